package import Logging
package import NIOCore
import NIOPosix

/// An HTTP/2 server over TLS whose handler controls every frame; used by the provider simulator and by tests.
///
/// Steps of one request run in order. An async handler runs each request in its own task, and the steps of different
/// requests interleave. A synchronous handler is called in request order, and the steps of one request start before the
/// next call.
package final class HTTP2Server: Sendable {
    /// The port in use; the one chosen by the system if `start` was given 0.
    package let port: Int
    private let channel: any Channel
    private let context: ServerContext

    private init(channel: any Channel, port: Int, context: ServerContext) {
        self.channel = channel
        self.port = port
        self.context = context
    }

    /// Listens on `host` and `port` (0: any free one) until `shutdown`.
    ///
    /// - Throws: NIO and NIOSSL errors, for instance for a port in use or an unreadable certificate file.
    package static func start(
        host: String = "127.0.0.1", port: Int = 0, tls: HTTP2ServerTLS, settings: HTTP2ServerSettings = .init(),
        eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton, logger: Logger,
        events: (@Sendable (HTTP2ServerEvent) -> Void)? = nil,
        handler: @escaping @Sendable (HTTP2ServerRequest) async -> [HTTP2ServerStep]
    ) async throws -> HTTP2Server {
        let context = ServerContext(settings: settings, logger: logger, events: events, handler: .concurrent(handler))
        return try await start(
            host: host, port: port, connectionAdmission: ConnectionAdmission(tls: tls, admission: { .serve }),
            eventLoopGroup: eventLoopGroup, context: context)
    }

    /// Listens like the other `start`, with a synchronous handler. It is called on the connection's event loop and must
    /// not block. It never receives requests above the last stream of a GOAWAY or on a dropped connection, so it
    /// processes exactly the requests that the client assumes.
    ///
    /// - Parameter admission: called for each accepted connection, before TLS.
    package static func start(
        host: String = "127.0.0.1", port: Int = 0, tls: HTTP2ServerTLS, settings: HTTP2ServerSettings = .init(),
        eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton, logger: Logger,
        events: (@Sendable (HTTP2ServerEvent) -> Void)? = nil,
        admission: @escaping @Sendable () -> HTTP2ServerAdmission = { .serve },
        inOrder handler: @escaping @Sendable (HTTP2ServerRequest) -> [HTTP2ServerStep]
    ) async throws -> HTTP2Server {
        let context = ServerContext(settings: settings, logger: logger, events: events, handler: .inOrder(handler))
        return try await start(
            host: host, port: port, connectionAdmission: ConnectionAdmission(tls: tls, admission: admission),
            eventLoopGroup: eventLoopGroup, context: context)
    }

    private static func start(
        host: String, port: Int, connectionAdmission: ConnectionAdmission, eventLoopGroup: any EventLoopGroup,
        context: ServerContext
    ) async throws -> HTTP2Server {
        let channel = try await ServerBootstrap(group: eventLoopGroup)
            .serverChannelOption(ChannelOptions.backlog, value: 1024)
            .serverChannelOption(ChannelOptions.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(ChannelOptions.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try connectionAdmission.admit(channel, to: context) }
            }
            .bind(host: host, port: port).get()
        return HTTP2Server(channel: channel, port: channel.localAddress?.port ?? port, context: context)
    }

    /// The open connections, oldest first.
    package var connections: [HTTP2ServerConnection] {
        context.entries.map(\.snapshot)
    }

    /// Runs steps on one connection, independent of requests. Ignored if the connection is closed.
    package func perform(_ steps: [HTTP2ServerStep], on connection: Int) {
        for entry in context.entries where entry.snapshot.id == connection { perform(steps, on: entry) }
    }

    /// Runs steps on every open connection.
    package func performOnAll(_ steps: [HTTP2ServerStep]) {
        for entry in context.entries { perform(steps, on: entry) }
    }

    /// Stops listening, sends GOAWAY on every connection and closes it; returns once all are closed. Idempotent.
    package func shutdown() async {
        // Both closes fail if the channel is already closed, which is harmless.
        try? await channel.close().get()
        let entries = context.close()
        for entry in entries {
            entry.channel.eventLoop.execute { entry.handler.value.shutDown() }
        }
        for entry in entries { try? await entry.channel.closeFuture.get() }
    }

    private func perform(_ steps: [HTTP2ServerStep], on entry: ServerContext.OpenConnection) {
        entry.channel.eventLoop.execute { entry.handler.value.perform(steps[...], stream: nil) }
    }
}
