import AMQP
import Logging
import Messaging
import ServiceKit

/// The broker's reply to a message of a worker.
enum PublishResult: Sendable {
    case confirmed
    /// The row stays, and its message is published again under the same id when the lease ends.
    case retry
    /// The broker refuses the message permanently. Its row is dead (``DeadRow/Reason/unsendable``).
    case refused
}

extension MessageBus {
    /// Publishes the messages of rows.
    ///
    /// - Parameter kind: the noun for such a message in the log: `A notification`.
    /// - Returns: the result of each message, in order.
    func post(_ messages: [AMQPMessage], kind: String, logger: Logger) async throws -> [PublishResult] {
        guard !messages.isEmpty else { return [] }
        return zip(messages, try await publish(messages)).map { message, answer in
            switch answer {
            case .confirmed:
                logger.debug("\(kind) is published", metadata: message.logMetadata)
                return .confirmed
            case .nacked: return .retry
            case .returned(let code, let text) where answer.isPermanentRefusal:
                logger.error(
                    "\(kind) is permanently refused by the broker; marking its row as dead",
                    metadata: message.logMetadata.merging([LogKey.reason: "\(code) \(text)"]) { $1 })
                return .refused
            case .returned(let code, let text):
                logger.error(
                    "\(kind) reaches no queue; retrying. Apply the topology, or check permissions",
                    metadata: message.logMetadata.merging([LogKey.reason: "\(code) \(text)"]) { $1 })
                return .retry
            }
        }
    }
}
