/// The address and TLS settings of a server. ALPN offers `h2` only.
package struct HTTP2Endpoint: Hashable, Sendable {
    package enum Trust: Hashable, Sendable {
        /// The system's certificate authorities.
        case system
        /// Only the certificate authorities in this PEM file.
        case certificates(pemFile: String)
    }

    /// A certificate (with its chain) and its private key, both PEM files.
    package struct ClientCertificate: Hashable, Sendable {
        package var certificateFile: String
        package var keyFile: String

        package init(certificateFile: String, keyFile: String) {
            self.certificateFile = certificateFile
            self.keyFile = keyFile
        }
    }

    package struct TLS: Hashable, Sendable {
        package var trust: Trust = .system
        package var clientCertificate: ClientCertificate?
    }

    /// A host name or IP address, resolved for each connection.
    package var host: String
    package var port: Int
    package var tls: TLS

    package init(host: String, port: Int = 443, tls: TLS = TLS()) {
        self.host = host
        self.port = port
        self.tls = tls
    }

    /// Parses `https://host[:port]` with an optional trailing slash; IPv6 addresses are in brackets.
    package init(
        url: String, caFile: String? = nil, clientCertificate: ClientCertificate? = nil
    ) throws(HTTP2Error) {
        guard let (host, port) = Self.parse(url) else {
            throw .invalidConfiguration("“\(url)” is not an endpoint: write https://host or https://host:port")
        }
        self.init(
            host: host, port: port,
            tls: TLS(
                trust: caFile.map { .certificates(pemFile: $0) } ?? .system, clientCertificate: clientCertificate))
    }

    /// The value of `:authority`; omits the default port.
    package var authority: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return port == 443 ? name : "\(name):\(port)"
    }

    private static func parse(_ url: String) -> (host: String, port: Int)? {
        let scheme = "https://"
        guard url.lowercased().hasPrefix(scheme) else { return nil }
        var rest = url.dropFirst(scheme.count)
        if rest.hasSuffix("/") { rest.removeLast() }
        guard !rest.contains(where: { "/?#@ ".contains($0) }) else { return nil }
        let host: Substring
        if rest.hasPrefix("[") {
            guard let end = rest.firstIndex(of: "]") else { return nil }
            host = rest[rest.index(after: rest.startIndex)..<end]
            rest = rest[rest.index(after: end)...]
        } else {
            host = rest.prefix { $0 != ":" }
            rest = rest[host.endIndex...]
        }
        guard !host.isEmpty else { return nil }
        if rest.isEmpty { return (String(host), 443) }
        guard rest.first == ":", let port = UInt16(rest.dropFirst()), port > 0 else { return nil }
        return (String(host), Int(port))
    }
}
