package import NIOCore
package import NIOHTTPTypes
import HTTPTypes
internal import Synchronization

/// Counts the open connections of one server.
package final class ConnectionCounter: Sendable {
    private let count = Atomic(0)

    package init() {}

    package var number: Int { count.load(ordering: .relaxed) }

    /// Counts a connection; returns the number of open ones, this one included.
    fileprivate func enter() -> Int { count.add(1, ordering: .relaxed).newValue }
    fileprivate func leave() { count.subtract(1, ordering: .relaxed) }
}

/// Enforces a server's connection limit and request time-out on one connection.
///
/// - A connection above `limit` gets 503 with `Retry-After` at its first request and is closed. Above `limit` +
///   ``overflowLimit`` it is closed at once.
/// - A request must arrive completely within `timeout`, or the connection is closed; single bytes do not extend it.
///   Between requests the server's idle time-out applies.
package final class ConnectionGuard: ChannelInboundHandler, RemovableChannelHandler {
    package typealias InboundIn = HTTPRequestPart
    package typealias InboundOut = HTTPRequestPart
    package typealias OutboundOut = HTTPResponsePart

    /// The default time-out for receiving a request.
    package static let timeout = TimeAmount.seconds(30)
    /// The number of connections above the limit that still get a 503.
    package static let overflowLimit = 500
    /// The `Retry-After` of the 503, in seconds.
    private static let retryAfter = "2"

    private let open: ConnectionCounter
    private let limit: Int
    private let timeout: TimeAmount
    private var isCounted = false
    private var isExcess = false
    private var closing: Scheduled<Void>?

    package init(_ open: ConnectionCounter, limit: Int, timeout: TimeAmount = ConnectionGuard.timeout) {
        self.open = open
        self.limit = limit
        self.timeout = timeout
    }

    package func handlerAdded(context: ChannelHandlerContext) {
        if context.channel.isActive { begin(context) }
    }

    package func channelActive(context: ChannelHandlerContext) {
        begin(context)
        context.fireChannelActive()
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head:
            if isExcess { return refuse(context) }
            if closing == nil { schedule(context) }
        case .body: if isExcess { return }
        case .end:
            if isExcess { return }
            stop()
        }
        context.fireChannelRead(data)
    }

    package func channelInactive(context: ChannelHandlerContext) {
        end()
        context.fireChannelInactive()
    }

    package func handlerRemoved(context: ChannelHandlerContext) { end() }

    private func begin(_ context: ChannelHandlerContext) {
        guard !isCounted else { return }
        isCounted = true
        let number = open.enter()
        isExcess = number > limit
        guard number <= limit + Self.overflowLimit else { return context.close(promise: nil) }
        schedule(context)
    }

    private func end() {
        stop()
        guard isCounted else { return }
        isCounted = false
        open.leave()
    }

    private func schedule(_ context: ChannelHandlerContext) {
        let channel = context.channel
        closing = context.eventLoop.scheduleTask(in: timeout) { channel.close(promise: nil) }
    }

    private func stop() {
        closing?.cancel()
        closing = nil
    }

    private func refuse(_ context: ChannelHandlerContext) {
        let head = HTTPResponse(
            status: .serviceUnavailable,
            headerFields: [.retryAfter: Self.retryAfter, .connection: "close", .contentLength: "0"])
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        let written = context.eventLoop.makePromise(of: Void.self)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: written)
        let channel = context.channel
        written.futureResult.whenComplete { _ in channel.close(promise: nil) }
    }
}
