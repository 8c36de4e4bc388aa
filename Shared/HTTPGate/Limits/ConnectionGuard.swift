import HTTPTypes
package import NIOCore
package import NIOHTTPTypes
internal import Synchronization

/// Counts the open connections of one server.
package final class OpenConnections: Sendable {
    private let count = Atomic(0)

    package init() {}

    package var number: Int { count.load(ordering: .relaxed) }

    /// - Returns: how many are open now, this one included.
    fileprivate func enter() -> Int { count.add(1, ordering: .relaxed).newValue }
    fileprivate func leave() { count.subtract(1, ordering: .relaxed) }
}

/// Bounds one connection of a server.
///
/// - A connection beyond `most` gets 503 with `Retry-After` at its first request, and is closed. Beyond a further ``excess``
///   connections it is closed at once.
/// - A request whose head and body are not there after `patience` ends its connection. A client that sends a byte now and
///   then holds it no longer. Between two requests the server's idle time-out counts.
package final class ConnectionGuard: ChannelInboundHandler, RemovableChannelHandler {
    package typealias InboundIn = HTTPRequestPart
    package typealias InboundOut = HTTPRequestPart
    package typealias OutboundOut = HTTPResponsePart

    /// How long a request may take to arrive.
    package static let patience = TimeAmount.seconds(30)
    /// How many connections beyond the bound may wait for their 503.
    package static let excess = 500
    /// In how many seconds a refused client may come again.
    private static let retryAfter = "2"

    private let open: OpenConnections
    private let most: Int
    private let patience: TimeAmount
    private var isCounted = false
    private var isExcess = false
    private var closing: Scheduled<Void>?

    package init(_ open: OpenConnections, most: Int, patience: TimeAmount = ConnectionGuard.patience) {
        self.open = open
        self.most = most
        self.patience = patience
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
        isExcess = number > most
        guard number <= most + Self.excess else { return context.close(promise: nil) }
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
        closing = context.eventLoop.scheduleTask(in: patience) { channel.close(promise: nil) }
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
