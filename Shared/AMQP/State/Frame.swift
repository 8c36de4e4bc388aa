/// A frame from the broker, copied out of the library's memory, with the fields this module uses.
enum Frame: Hashable, Sendable {
    case deliver(Deliver)
    case returned(Return)
    /// Announces a body of `bodySize` bytes for the preceding method.
    case header(bodySize: UInt64, AMQPProperties)
    case body([UInt8])
    /// Answers to publishes; `multiple` covers every tag up to this one.
    case ack(tag: UInt64, multiple: Bool)
    case nack(tag: UInt64, multiple: Bool)
    /// The broker cancelled a consumer, for example because its queue was deleted (RabbitMQ: Consumer Cancel
    /// Notification).
    case cancel(consumerTag: String)
    case channelClose(Close)
    case connectionClose(Close)
    case blocked(reason: String)
    case unblocked
    case flow(active: Bool)
    case heartbeat
    /// An ignored method, by its number.
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
        /// The method that failed, as class << 16 | method; 0 when none.
        var cause: UInt32

        /// ``cause`` of a failed `basic.publish`.
        static let publish: UInt32 = 0x003C_0028
    }
}
