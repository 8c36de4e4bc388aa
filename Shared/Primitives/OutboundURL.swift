/// The URL of a destination that an app's owner names, such as a webhook.
///
/// Accepts one plain form only, so that every parser reads the same host: `https://host[:port][/path][?query]`, ASCII.
/// The name's addresses are checked when the connection is opened, because a name can change its addresses.
package struct OutboundURL: Hashable, Sendable {
    package static let maximumLength = 2048

    package enum Scheme: String, Hashable, Sendable { case https, http }

    /// The reason for a refusal. Quotes the host at most.
    package struct Refusal: Error, Hashable, Sendable, CustomStringConvertible {
        package let description: String

        init(_ description: String) { self.description = description }
    }

    package let text: String
    package let scheme: Scheme
    /// In lower case; an IPv6 address without brackets.
    package let host: String
    package let port: Int
    /// The host as an address of 4 or 16 bytes; `nil` for a name.
    package let address: [UInt8]?

    package init(_ text: String) throws(Refusal) {
        guard text.utf8.count <= Self.maximumLength else {
            throw Refusal("it is longer than \(Self.maximumLength) bytes")
        }
        let unusual = Set("\"<>\\^`{|}#".utf8)
        guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && !unusual.contains($0) }) else {
            throw Refusal("it has a fragment, or a character that must be percent-encoded")
        }
        let rest: Substring
        if text.hasPrefix("https://") {
            (scheme, rest) = (.https, text.dropFirst(8))
        } else if text.hasPrefix("http://") {
            (scheme, rest) = (.http, text.dropFirst(7))
        } else {
            throw Refusal("it does not begin with https://")
        }
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        guard !authority.contains("@") else { throw Refusal("it contains credentials; use the signature") }
        guard !authority.contains("%") else { throw Refusal("its host is percent-encoded") }
        let (host, port) = try Self.hostAndPort(authority)
        self.text = text
        self.host = host.lowercased()
        self.port = port ?? (scheme == .https ? 443 : 80)
        address = try Self.address(of: self.host, isBracketed: authority.hasPrefix("["))
        guard self.port == 443 || (1024...65_535).contains(self.port) || scheme == .http && self.port == 80 else {
            throw Refusal("its port \(self.port) is not 443, or 1024 to 65535")
        }
        if scheme == .http {
            guard self.host == "localhost" || address.map(AddressClass.init) == .loopback else {
                throw Refusal("http is for tests on this machine only; use https")
            }
        }
    }

    private static func hostAndPort(_ authority: Substring) throws(Refusal) -> (host: Substring, port: Int?) {
        let host: Substring
        var rest: Substring
        if authority.hasPrefix("[") {
            guard let end = authority.firstIndex(of: "]") else { throw Refusal("its host is incomplete") }
            host = authority[authority.index(after: authority.startIndex)..<end]
            rest = authority[authority.index(after: end)...]
        } else {
            host = authority.prefix { $0 != ":" }
            rest = authority.dropFirst(host.count)
        }
        guard !host.isEmpty else { throw Refusal("it has no host") }
        guard !rest.isEmpty else { return (host, nil) }
        guard rest.removeFirst() == ":", (1...5).contains(rest.count), rest.allSatisfy({ "0"..."9" ~= $0 }),
            let port = Int(rest)
        else { throw Refusal("its port is not a number") }
        return (host, port)
    }

    private static func address(of host: String, isBracketed: Bool) throws(Refusal) -> [UInt8]? {
        if let bytes = AddressClass.bytes(of: host) {
            guard (bytes.count == 16) == isBracketed else { throw Refusal("its host is not an address or a name") }
            return bytes
        }
        let labels = host.split(separator: ".", omittingEmptySubsequences: false)
        let letters = Set("abcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        guard !isBracketed, host.utf8.count <= 253,
            labels.allSatisfy({ (1...63).contains($0.utf8.count) && $0.utf8.allSatisfy(letters.contains) })
        else { throw Refusal("its host is not an address or a name") }
        // Parsers read 127.1, 0x7f000001 and 2130706433 as addresses.
        let last = labels.last ?? ""
        guard !last.allSatisfy({ "0"..."9" ~= $0 }), !last.hasPrefix("0x") else {
            throw Refusal("its host is a number in an unusual form; write four decimal numbers")
        }
        return nil
    }

    /// Names that never belong to the internet (RFC 6761, RFC 6762, RFC 8375, RFC 9476).
    private static let privateNames = ["localhost", "local", "internal", "home.arpa", "alt"]

    /// The reason why requests must not go there; `nil` if they may.
    ///
    /// - Parameters:
    ///   - privateNetworks: whether networks of the operator are destinations too.
    ///   - plaintext: whether `http` is accepted, then for this machine only.
    package func refusal(privateNetworks: Bool, plaintext: Bool) -> Refusal? {
        if scheme == .http, !(privateNetworks && plaintext) { return Refusal("it does not begin with https://") }
        if let address {
            let kind = AddressClass(address)
            guard kind.isAllowed(privateNetworks: privateNetworks) else {
                return Refusal("\(host) is a \(kind.rawValue) address")
            }
        } else if !privateNetworks,
            Self.privateNames.contains(where: { host == $0 || host.hasSuffix(".\($0)") })
        {
            return Refusal("\(host) is a name of a private network")
        }
        return nil
    }
}
