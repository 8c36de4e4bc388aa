/// The position at which reading a stream starts (https://www.rabbitmq.com/docs/streams#consuming).
package enum AMQPStreamStart: Hashable, Sendable {
    /// The oldest message in the stream.
    case first
    /// This offset, or the next one that the broker has.
    case offset(Int64)
    /// The messages from this time on, in seconds since 1970. RabbitMQ starts at a chunk, so the first deliveries may
    /// be older.
    case since(Int64)

    var argument: AMQPValue {
        switch self {
        case .first: "first"
        case .offset(let offset): .int(offset)
        case .since(let seconds): .timestamp(seconds)
        }
    }
}

extension AMQPDelivery {
    /// The offset of a message in its stream; `nil` for a message of a queue.
    package var streamOffset: Int64? { properties.headers["x-stream-offset"]?.int }
}
