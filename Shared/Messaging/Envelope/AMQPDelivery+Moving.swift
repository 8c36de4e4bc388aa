package import AMQP
package import PushProtocol

// For a consumer that is no ``Stage``: it publishes the copy with a confirm and then acknowledges the delivery.

extension AMQPDelivery {
    /// How often this message was tried, this time included: from 1.
    package func attempt(on queue: WorkQueue) -> Int { Inbound(self, queue: queue, now: .now).attempt }

    /// The copy that waits in `level` and comes back to `queue` as its `attempt`-th attempt.
    package func postponed(on queue: WorkQueue, to level: RetryLevel, attempt: Int, by service: String) -> AMQPMessage {
        Redirection(service: service)
            .again(self, as: Inbound(self, queue: queue, now: .now), at: level, attempt: attempt)
    }

    /// The copy for the dead-letter queue of `queue`, with the reason, the place and the time in its headers.
    package func deadLetter(on queue: WorkQueue, because reason: Reason, by service: String) -> AMQPMessage {
        Redirection(service: service)
            .deadLetter(self, as: Inbound(self, queue: queue, now: .now), because: reason, at: .now)
    }
}
