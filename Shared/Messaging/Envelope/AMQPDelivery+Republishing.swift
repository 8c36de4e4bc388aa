package import AMQP
package import PushProtocol

// For a consumer without a ``Stage``: publish the copy with a confirm, then acknowledge the delivery.

extension AMQPDelivery {
    /// The attempt number of this message, from 1.
    package func attempt(on queue: WorkQueue) -> Int { Inbound(self, queue: queue, now: .now).attempt }

    /// The copy for the retry queue of `level`. It returns to `queue` as attempt `attempt`.
    package func retryCopy(on queue: WorkQueue, to level: RetryLevel, attempt: Int, by service: String) -> AMQPMessage {
        RepublishRouting(service: service)
            .retryCopy(self, as: Inbound(self, queue: queue, now: .now), at: level, attempt: attempt)
    }

    /// The copy for the dead-letter queue of `queue`, with reason, queue, service and time in its headers.
    package func deadLetterCopy(on queue: WorkQueue, because reason: Reason, by service: String) -> AMQPMessage {
        RepublishRouting(service: service)
            .deadLetterCopy(self, as: Inbound(self, queue: queue, now: .now), because: reason, at: .now)
    }
}
