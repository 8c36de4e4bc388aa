/// Where in a stream reading begins (https://www.rabbitmq.com/docs/streams#consuming).
package enum AMQPStreamStart: Hashable, Sendable {
    /// With the oldest message that is still kept.
    case first
    /// With the message of this number, or the next one that the broker has.
    case offset(Int64)
    /// With the messages of this moment, in seconds since 1970. The first deliveries may be older: a stream is found by
    /// chunk.
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
    /// The number of a message in its stream; `nil` for one of a queue.
    package var streamOffset: Int64? { properties.headers["x-stream-offset"]?.int }
}
