/// A parsed broker URL. Parsing is strict, and no error contains the password.
struct AMQPAddress: Hashable {
    var usesTLS: Bool
    var user: String
    var password: Secret
    var hosts: [AMQPConfiguration.Host]
    var virtualHost: String

    init(parsing url: String) throws(AMQPError) {
        guard let scheme = url.firstRange(of: "://") else {
            throw Self.error("it does not begin with amqp:// or amqps://")
        }
        switch url[..<scheme.lowerBound].lowercased() {
        case "amqp": usesTLS = false
        case "amqps": usesTLS = true
        default: throw Self.error("it does not begin with amqp:// or amqps://")
        }
        var rest = url[scheme.upperBound...]
        guard !rest.contains("?"), !rest.contains("#") else {
            throw Self.error("it has a query or fragment; write ? and # as %3F and %23, and set options elsewhere")
        }
        var path: Substring = ""
        if let slash = rest.firstIndex(of: "/") {
            path = rest[rest.index(after: slash)...]
            rest = rest[..<slash]
        }
        guard !path.contains("/") else { throw Self.error("a / in the virtual host's name must be written as %2F") }
        let decodedPath = try Self.decode(path, "virtual host")
        virtualHost = decodedPath.isEmpty ? "/" : decodedPath

        guard let at = rest.lastIndex(of: "@") else { throw Self.error("it names no user (user:password@host)") }
        let credentials = rest[..<at]
        guard let colon = credentials.firstIndex(of: ":") else { throw Self.error("it has no password") }
        user = try Self.decode(credentials[..<colon], "user name")
        password = Secret(text: try Self.decode(credentials[credentials.index(after: colon)...], "password"))
        guard !user.isEmpty else { throw Self.error("its user name is empty") }
        hosts = try Self.hosts(rest[rest.index(after: at)...], defaultPort: usesTLS ? 5671 : 5672)
    }

    private static func hosts(
        _ list: Substring, defaultPort: Int
    ) throws(AMQPError) -> [AMQPConfiguration.Host] {
        var hosts: [AMQPConfiguration.Host] = []
        for item in list.split(separator: ",", omittingEmptySubsequences: false) {
            var name = item
            var port: Substring?
            if item.hasPrefix("[") {
                guard let bracket = item.firstIndex(of: "]") else { throw error("“\(item)” has no closing bracket") }
                name = item[item.index(after: item.startIndex)..<bracket]
                let after = item[item.index(after: bracket)...]
                guard after.isEmpty || after.hasPrefix(":") else { throw error("“\(item)” is not a host") }
                port = after.isEmpty ? nil : after.dropFirst()
            } else if let colon = item.lastIndex(of: ":") {
                name = item[..<colon]
                port = item[item.index(after: colon)...]
            }
            let isHost = name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f } && (item.hasPrefix("[") || !name.contains(":"))
            guard !name.isEmpty, isHost else { throw error("“\(item)” is not a host") }
            guard let port else {
                hosts.append(.init(name: String(name), port: defaultPort))
                continue
            }
            guard let number = Int(port), (1...65_535).contains(number) else {
                throw error("“\(port)” is not a port (1–65535)")
            }
            hosts.append(.init(name: String(name), port: number))
        }
        return hosts
    }

    private static func decode(_ text: Substring, _ part: String) throws(AMQPError) -> String {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(hexadecimal), let low = rest.popFirst().flatMap(hexadecimal) else {
                throw error("its \(part) has a % that is not followed by two hexadecimal digits")
            }
            bytes.append(high << 4 | low)
        }
        guard !bytes.contains(0), let decoded = String(validating: bytes, as: UTF8.self) else {
            throw error("its \(part) is not text")
        }
        return decoded
    }

    private static func hexadecimal(_ digit: UInt8) -> UInt8? {
        Character(UnicodeScalar(digit)).hexDigitValue.map(UInt8.init)
    }

    private static func error(_ detail: String) -> AMQPError {
        AMQPError(.configuration, operation: "AMQP URL", detail: detail)
    }
}
