import HTTP2
import NIOCore
import NIOSSL
import Synchronization

/// How a server treats a newly accepted connection.
package enum HTTP2ServerAdmission: Hashable, Sendable {
    /// Serves it with the server's own TLS settings.
    case serve
    /// Resets TCP at the client's first bytes.
    case refuse
    /// Keeps TCP open and never answers the TLS handshake.
    case ignore
    /// Serves it with other TLS settings, for instance an untrusted certificate or another ALPN protocol.
    case present(HTTP2ServerTLS)
}

/// Sets up the pipeline of accepted connections according to `HTTP2ServerAdmission`. Thread-safe.
final class ConnectionAdmission: Sendable {
    private let admission: @Sendable () -> HTTP2ServerAdmission
    private let defaultContext: NIOSSLContext
    /// Contexts of `.present`, cached: reading certificate files for each connection would block the event loop.
    private let otherContexts = Mutex<[HTTP2ServerTLS: NIOSSLContext]>([:])

    /// Throws NIOSSL errors, for instance for an unreadable certificate file.
    init(tls: HTTP2ServerTLS, admission: @escaping @Sendable () -> HTTP2ServerAdmission) throws {
        defaultContext = try NIOSSLContext(configuration: tls.configuration())
        self.admission = admission
    }

    /// Fills the pipeline of a new connection. Throwing closes it.
    func admit(_ channel: any Channel, to server: ServerContext) throws {
        let pipeline = channel.pipeline.syncOperations
        switch admission() {
        case .serve:
            try pipeline.addHandlers(NIOSSLServerHandler(context: defaultContext), ServerChannelHandler(server: server))
        case .present(let tls):
            let context = try context(for: tls)
            try pipeline.addHandlers(NIOSSLServerHandler(context: context), ServerChannelHandler(server: server))
        case .refuse: try pipeline.addHandler(RefusingHandler())
        // An empty pipeline discards all bytes read.
        case .ignore: return
        }
    }

    private func context(for tls: HTTP2ServerTLS) throws -> NIOSSLContext {
        if let cached = otherContexts.withLock({ $0[tls] }) { return cached }
        let context = try NIOSSLContext(configuration: tls.configuration())
        otherContexts.withLock { $0[tls] = context }
        return context
    }
}

/// Resets the connection at the client's first bytes.
private final class RefusingHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        context.resetConnection(bypassing: NIOSSLServerHandler.self)
    }
}

extension HTTP2ServerTLS {
    func configuration() throws -> TLSConfiguration {
        let chain = try NIOSSLCertificate.fromPEMFile(certificateFile).map { NIOSSLCertificateSource.certificate($0) }
        let key = try NIOSSLPrivateKey(file: keyFile, format: .pem)
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain, privateKey: .privateKey(key))
        configuration.minimumTLSVersion = .tlsv12
        configuration.applicationProtocols = applicationProtocols
        switch clientCertificates {
        case .ignored:
            break
        case .optional(let caFile):
            configuration.certificateVerification = .optionalVerification
            configuration.trustRoots = .file(caFile)
        case .required(let caFile):
            configuration.certificateVerification = .noHostnameVerification
            configuration.trustRoots = .file(caFile)
        }
        return configuration
    }
}
