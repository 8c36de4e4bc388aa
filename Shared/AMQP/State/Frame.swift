/// One frame from the broker, copied out of the library's memory and reduced to what this room acts upon.
enum Frame: Hashable, Sendable {
    case deliver(Deliver)
    case returned(Return)
    /// Announces `bodySize` bytes of body for the method before it.
    case header(bodySize: UInt64, AMQPProperties)
    case body([UInt8])
    /// The broker's answers to publishes; `multiple` means every tag up to this one.
    case ack(tag: UInt64, multiple: Bool)
    case nack(tag: UInt64, multiple: Bool)
    /// The broker ended a consumer by itself: its queue is gone, or has a new leader.
    case cancel(consumerTag: String)
    case channelClose(Close)
    case connectionClose(Close)
    case blocked(reason: String)
    case unblocked
    case flow(active: Bool)
    case heartbeat
    /// A method nobody waits for any more, by its number.
    case other(UInt32)

    struct Deliver: Hashable, Sendable {
        var consumerTag: String
        var deliveryTag: UInt64
        var redelivered: Bool
        var exchange: String
        var routingKey: String
    }

    struct Return: Hashable, Sendable {
        var code: Int
        var text: String
        var exchange: String
        var routingKey: String
    }

    struct Close: Hashable, Sendable {
        var code: Int
        var text: String
        /// The class and method that gave offence, as class << 16 | method; 0 when none did.
        var cause: UInt32

        /// The cause when a publish was at fault.
        static let publish: UInt32 = 0x003C_0028
    }
}
