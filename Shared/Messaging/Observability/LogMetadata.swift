internal import AMQP
internal import Logging
internal import PushProtocol

/// The log metadata of every line about one message.
///
/// | key | value |
/// |---|---|
/// | `queue` | the queue that it came from |
/// | `message_id` | its id; a notification's id in the queues of notifications |
/// | `correlation` | the id of the event, on all messages that follow from it |
/// | `causation` | the id of the message that it follows from: of a push, its notification |
/// | `attempt` | from 1 |
///
/// So the event's id finds all lines, and the notification's id those of its registry and sender. A value that the message
/// does not have is `-`.
enum LogMetadata {
    /// - Parameter message: the decoded message; `nil` if it cannot be decoded.
    static func of(_ inbound: Inbound, _ message: (any ErasedDelivery)?) -> Logger.Metadata {
        let trace = message?.trace
        let properties = inbound.delivery.properties
        return [
            LogKey.queue: "\(inbound.queue.name)", LogKey.messageID: "\(inbound.messageID ?? "-")",
            LogKey.correlation: "\(trace?.correlation ?? properties.correlationID ?? "-")",
            LogKey.causation: "\(trace?.causation ?? "-")", LogKey.attempt: "\(inbound.attempt)",
        ]
    }

    /// The destination of a published message, and its ids.
    static func of(_ message: AMQPMessage) -> Logger.Metadata {
        [
            LogKey.exchange: "\(message.exchange)", LogKey.routingKey: "\(message.routingKey)",
            LogKey.messageID: "\(message.properties.messageID ?? "-")",
            LogKey.correlation: "\(message.properties.correlationID ?? "-")",
        ]
    }
}
