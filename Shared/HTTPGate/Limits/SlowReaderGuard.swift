package import NIOCore

/// Closes the connection of a client that does not read what is written to it, so that nothing waits for it for good.
package final class SlowReaderGuard: ChannelInboundHandler, RemovableChannelHandler {
    package typealias InboundIn = NIOAny

    /// How long what is written may find no room.
    package static let patience = TimeAmount.seconds(30)

    private let patience: TimeAmount
    private var closing: Scheduled<Void>?

    package init(patience: TimeAmount = SlowReaderGuard.patience) { self.patience = patience }

    package func channelWritabilityChanged(context: ChannelHandlerContext) {
        stop()
        if !context.channel.isWritable {
            let channel = context.channel
            closing = context.eventLoop.scheduleTask(in: patience) { channel.close(promise: nil) }
        }
        context.fireChannelWritabilityChanged()
    }

    package func channelInactive(context: ChannelHandlerContext) {
        stop()
        context.fireChannelInactive()
    }

    package func handlerRemoved(context: ChannelHandlerContext) { stop() }

    private func stop() {
        closing?.cancel()
        closing = nil
    }
}
