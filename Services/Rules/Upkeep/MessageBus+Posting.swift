import AMQP
import Logging
import Messaging
import ServiceKit

extension MessageBus {
    /// Publishes what is kept until the broker has it. Whatever it has not is left where it is: it is published again, under
    /// the same ids, by whoever looks when the lease is over.
    ///
    /// - Parameter kind: what each of these is, as the log names it: `A notification`.
    /// - Returns: of each message in turn, whether the broker has it.
    func post(_ messages: [AMQPMessage], kind: String, logger: Logger) async throws -> [Bool] {
        guard !messages.isEmpty else { return [] }
        return try await publish(messages).map { answer in
            switch answer {
            case .confirmed: return true
            case .nacked: return false
            case .returned(let code, let text):
                logger.error(
                    "\(kind) reaches no queue and is published again: apply the topology, or check its permissions",
                    metadata: [LogKey.reason: "\(code) \(text)"])
                return false
            }
        }
    }
}
