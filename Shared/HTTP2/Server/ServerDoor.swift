import NIOCore
import NIOSSL
import Synchronization

/// What becomes of a connection that was just accepted.
package enum HTTP2ServerAdmission: Hashable, Sendable {
    /// It is served as the server was configured.
    case serve
    /// TCP is reset before TLS says a word.
    case refuse
    /// TCP stays open and TLS is never answered.
    case ignore
    /// It is shown another face: a certificate that is not to be trusted, another protocol.
    case present(HTTP2ServerTLS)
}

/// Where accepted connections enter a server: decides what each gets to see. Safe from any thread.
final class ServerDoor: Sendable {
    private let admission: @Sendable () -> HTTP2ServerAdmission
    private let usual: NIOSSLContext
    /// Made once for each face, since reading certificates for every connection would hold up the event loop.
    private let faces = Mutex<[HTTP2ServerTLS: NIOSSLContext]>([:])

    /// Throws what NIOSSL throws: a certificate file cannot be read.
    init(tls: HTTP2ServerTLS, admission: @escaping @Sendable () -> HTTP2ServerAdmission) throws {
        usual = try NIOSSLContext(configuration: tls.configuration())
        self.admission = admission
    }

    /// Fills the pipeline of a new connection. Throwing closes it.
    func admit(_ channel: any Channel, to server: ServerContext) throws {
        let pipeline = channel.pipeline.syncOperations
        switch admission() {
        case .serve:
            try pipeline.addHandlers(NIOSSLServerHandler(context: usual), ServerChannelHandler(server: server))
        case .present(let tls):
            let context = try context(for: tls)
            try pipeline.addHandlers(NIOSSLServerHandler(context: context), ServerChannelHandler(server: server))
        case .refuse: try pipeline.addHandler(RefusingHandler())
        // Nobody listens in this pipeline, so bytes are read and forgotten until the client gives up.
        case .ignore: return
        }
    }

    private func context(for tls: HTTP2ServerTLS) throws -> NIOSSLContext {
        if let known = faces.withLock({ $0[tls] }) { return known }
        let made = try NIOSSLContext(configuration: tls.configuration())
        faces.withLock { $0[tls] = made }
        return made
    }
}

/// Resets the connection as soon as the client says something.
private final class RefusingHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        context.resetConnection(passing: NIOSSLServerHandler.self)
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
