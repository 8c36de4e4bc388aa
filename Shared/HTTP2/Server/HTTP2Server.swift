package import Logging
package import NIOCore
import NIOPosix

/// An HTTP/2 server over TLS whose every frame is up to its handler: the base of the provider simulator.
///
/// Steps of one request are carried out in order. A handler that suspends has each request in a task of its own, and the
/// steps of different requests interleave as it returns; one that does not is asked in the order of the requests, and
/// the steps of one are begun before the next is looked at.
package final class HTTP2Server: Sendable {
    /// The port it listens on, also when it was asked for any.
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
    /// Throws what NIO and NIOSSL throw: the port is taken, a certificate file cannot be read.
    package static func start(
        host: String = "127.0.0.1", port: Int = 0, tls: HTTP2ServerTLS, settings: HTTP2ServerSettings = .init(),
        eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton, logger: Logger,
        events: (@Sendable (HTTP2ServerEvent) -> Void)? = nil,
        handler: @escaping @Sendable (HTTP2ServerRequest) async -> [HTTP2ServerStep]
    ) async throws -> HTTP2Server {
        let context = ServerContext(settings: settings, logger: logger, events: events, handler: .concurrent(handler))
        return try await start(
            host: host, port: port, door: ServerDoor(tls: tls, admission: { .serve }), eventLoopGroup: eventLoopGroup,
            context: context)
    }

    /// Listens like the other `start`, with a handler that never suspends: it is called on the connection's event loop and
    /// must not block. Requests above the last stream of a GOAWAY, or behind a dropped connection, never reach it, so
    /// that what it saw and what the client was told agree.
    ///
    /// - Parameter admission: asked about each accepted connection, before TLS.
    package static func start(
        host: String = "127.0.0.1", port: Int = 0, tls: HTTP2ServerTLS, settings: HTTP2ServerSettings = .init(),
        eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton, logger: Logger,
        events: (@Sendable (HTTP2ServerEvent) -> Void)? = nil,
        admission: @escaping @Sendable () -> HTTP2ServerAdmission = { .serve },
        inOrder handler: @escaping @Sendable (HTTP2ServerRequest) -> [HTTP2ServerStep]
    ) async throws -> HTTP2Server {
        let context = ServerContext(settings: settings, logger: logger, events: events, handler: .inOrder(handler))
        return try await start(
            host: host, port: port, door: ServerDoor(tls: tls, admission: admission), eventLoopGroup: eventLoopGroup,
            context: context)
    }

    private static func start(
        host: String, port: Int, door: ServerDoor, eventLoopGroup: any EventLoopGroup, context: ServerContext
    ) async throws -> HTTP2Server {
        let channel = try await ServerBootstrap(group: eventLoopGroup)
            .serverChannelOption(ChannelOptions.backlog, value: 1024)
            .serverChannelOption(ChannelOptions.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(ChannelOptions.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try door.admit(channel, to: context) }
            }
            .bind(host: host, port: port).get()
        return HTTP2Server(channel: channel, port: channel.localAddress?.port ?? port, context: context)
    }

    /// The connections that are open now, oldest first.
    package var connections: [HTTP2ServerConnection] {
        context.entries.map(\.snapshot)
    }

    /// Carries out steps on one connection that no request asked for; ignored when it is gone.
    package func perform(_ steps: [HTTP2ServerStep], on connection: Int) {
        for entry in context.entries where entry.snapshot.id == connection { perform(steps, on: entry) }
    }

    /// Carries out steps on every open connection.
    package func performOnAll(_ steps: [HTTP2ServerStep]) {
        for entry in context.entries { perform(steps, on: entry) }
    }

    /// Sends every connection a GOAWAY; by default one that admits everything received.
    package func goAwayAll(_ goAway: HTTP2ServerGoAway = .init(lastStream: .received)) {
        performOnAll([.goAway(goAway)])
    }

    /// Tells every open connection a new stream limit; later connections still start with the settings' one.
    package func setMaximumConcurrentStreams(_ count: Int) {
        performOnAll([.changeMaximumConcurrentStreams(count)])
    }

    /// Stops listening, tells every connection GOAWAY and closes it; returns when all are closed. Idempotent.
    package func shutdown() async {
        // Both closes report an error when someone else closed first, which is as good.
        try? await channel.close().get()
        let entries = context.close()
        for entry in entries {
            entry.channel.eventLoop.execute { entry.handler.value.shutDown() }
        }
        for entry in entries { try? await entry.channel.closeFuture.get() }
    }

    private func perform(_ steps: [HTTP2ServerStep], on entry: ServerContext.Entry) {
        entry.channel.eventLoop.execute { entry.handler.value.perform(steps[...], stream: nil) }
    }
}
