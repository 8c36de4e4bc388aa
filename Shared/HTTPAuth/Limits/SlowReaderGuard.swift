package import NIOCore

/// Closes the connection of a client that does not read its responses.
package final class SlowReaderGuard: ChannelInboundHandler, RemovableChannelHandler {
    package typealias InboundIn = NIOAny

    /// The default time for which the channel may stay unwritable.
    package static let timeout = TimeAmount.seconds(30)

    private let timeout: TimeAmount
    private var closing: Scheduled<Void>?

    package init(timeout: TimeAmount = SlowReaderGuard.timeout) { self.timeout = timeout }

    package func channelWritabilityChanged(context: ChannelHandlerContext) {
        stop()
        if !context.channel.isWritable {
            let channel = context.channel
            closing = context.eventLoop.scheduleTask(in: timeout) { channel.close(promise: nil) }
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
