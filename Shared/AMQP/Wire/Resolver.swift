internal import Glibc

/// Resolves host names with `getaddrinfo`. Blocks the calling thread.
enum Resolver {
    /// The numeric addresses of a host, in the system's order of preference.
    static func addresses(of host: AMQPConfiguration.Host) throws(AMQPError) -> [String] {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_ADDRCONFIG
        var list: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(host.name, nil, &hints, &list)
        guard status == 0 else {
            throw AMQPError(
                .unreachable, operation: "look up \(host.name)", detail: String(cString: gai_strerror(status)))
        }
        defer { freeaddrinfo(list) }
        var addresses: [String] = []
        var next = list
        while let entry = next {
            var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
            let found = getnameinfo(
                entry.pointee.ai_addr, entry.pointee.ai_addrlen, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST)
            if found == 0 {
                addresses.append(String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self))
            }
            next = entry.pointee.ai_next
        }
        return addresses
    }
}
