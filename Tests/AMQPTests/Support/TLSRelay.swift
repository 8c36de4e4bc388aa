import NIOCore
import NIOPosix
import NIOSSL
import TestSupport

/// Terminates TLS and forwards to the broker, so that the broker needs no TLS listener.
struct TLSRelay {
    let port: Int

    /// Listens on loopback with `certificates` during `body`.
    static func with(_ certificates: TestCertificates, target: Int, _ body: (TLSRelay) async throws -> Void)
        async throws
    {
        let tls = TLSConfiguration.makeServerConfiguration(
            certificateChain: try NIOSSLCertificate.fromPEMFile(certificates.serverCertificateFile).map {
                .certificate($0)
            },
            privateKey: .privateKey(try NIOSSLPrivateKey(file: certificates.serverKeyFile, format: .pem)))
        let context = try NIOSSLContext(configuration: tls)
        let group = MultiThreadedEventLoopGroup.singleton
        let listener = try await ServerBootstrap(group: group)
            .childChannelOption(.autoRead, value: false)
            .childChannelInitializer { client in
                client.eventLoop.makeCompletedFuture {
                    try client.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: context))
                    try client.pipeline.syncOperations.addHandler(ClientSideHandler(target: target))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let outcome: Result<Void, any Error>
        do {
            outcome = .success(try await body(TLSRelay(port: listener.localAddress?.port ?? 0)))
        } catch {
            outcome = .failure(error)
        }
        try await listener.close()
        try outcome.get()
    }
}

/// Connects to the broker on the client's event loop, then starts reading.
private final class ClientSideHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private let target: Int
    private var broker: (any Channel)?

    init(target: Int) { self.target = target }

    func channelActive(context: ChannelHandlerContext) {
        let client = context.channel
        let this = NIOLoopBound(self, eventLoop: context.eventLoop)
        ClientBootstrap(group: context.eventLoop)
            .channelInitializer { broker in
                broker.eventLoop.makeCompletedFuture {
                    try broker.pipeline.syncOperations.addHandler(BrokerSideHandler(client: client))
                }
            }
            .connect(host: "127.0.0.1", port: target).whenComplete { result in
                switch result {
                case .success(let broker):
                    this.value.broker = broker
                    client.setOption(.autoRead, value: true).whenComplete { _ in client.read() }
                case .failure: client.close(promise: nil)
                }
            }
        context.fireChannelActive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        broker?.writeAndFlush(unwrapInboundIn(data), promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) { broker?.close(promise: nil) }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}

/// Forwards the broker's data to the client.
private final class BrokerSideHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private let client: any Channel

    init(client: any Channel) { self.client = client }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        client.writeAndFlush(unwrapInboundIn(data), promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) { client.close(promise: nil) }
}
