import NIOCore
import NIOSSL

/// TLS configuration of an endpoint, read from its files once and shared by all connections of a client.
struct ClientTLS: Sendable {
    private let context: NIOSSLContext
    /// Nil for an IP address: SNI carries names only (RFC 6066 §3). The certificate is then verified for the address.
    private let serverName: String?

    init(endpoint: HTTP2Endpoint) throws(HTTP2Error) {
        do {
            context = try NIOSSLContext(configuration: endpoint.tls.configuration())
        } catch {
            throw .invalidConfiguration("TLS for \(endpoint.authority) cannot be set up: \(error)")
        }
        let isAddress = (try? SocketAddress(ipAddress: endpoint.host, port: endpoint.port)) != nil
        serverName = isAddress ? nil : endpoint.host
    }

    func makeHandler() throws -> NIOSSLClientHandler {
        try NIOSSLClientHandler(context: context, serverHostname: serverName)
    }

    /// Classifies a connection error. BoringSSL exposes its reasons as text only.
    static func failure(from error: any Error) -> HTTP2Failure {
        let text = "\(error)"
        if text.contains("NO_APPLICATION_PROTOCOL") {
            return HTTP2Failure(.noHTTP2, "the server rejected ALPN h2: \(text)")
        }
        if error is NIOSSLExtraError || text.contains("CERTIFICATE") || text.contains("UNKNOWN_CA") {
            return HTTP2Failure(.certificateRejected, text)
        }
        return HTTP2Failure(.connectionLost, text)
    }
}

extension HTTP2Endpoint.TLS {
    fileprivate func configuration() throws -> TLSConfiguration {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.minimumTLSVersion = .tlsv12
        configuration.applicationProtocols = ["h2"]
        if case .certificates(let file) = trust {
            configuration.trustRoots = .certificates(try NIOSSLCertificate.fromPEMFile(file))
        }
        if let clientCertificate {
            configuration.certificateChain = try NIOSSLCertificate.fromPEMFile(clientCertificate.certificateFile)
                .map { .certificate($0) }
            configuration.privateKey = .privateKey(
                try NIOSSLPrivateKey(file: clientCertificate.keyFile, format: .pem))
        }
        return configuration
    }
}
