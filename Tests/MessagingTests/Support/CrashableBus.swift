import AMQP
import Messaging
import Synchronization
import TestSupport

/// The connection of one process, which can crash.
///
/// After the crash the process may still run for a moment, and nothing it does reaches the broker. Without that, a
/// stage between two subscriptions would consume again, and keep the deliveries of the next process.
final class CrashableBus: ForwardingBus {
    let bus: InMemoryBus
    private let hasCrashed = Mutex(false)

    init(_ bus: InMemoryBus) { self.bus = bus }

    /// Requeues all unsettled messages of the process.
    func crash() {
        hasCrashed.withLock { hasCrashed in
            hasCrashed = true
            bus.abandonConsumers()
        }
    }

    func subscribe(queue: String, prefetch: UInt16) -> BusSubscription {
        hasCrashed.withLock { hasCrashed in
            guard hasCrashed else { return bus.subscribe(queue: queue, prefetch: prefetch) }
            return BusSubscription(deliveries: AsyncStream { $0.finish() }) {}
        }
    }

    func acknowledge(_ tags: [AMQPDeliveryTag]) { unlessCrashed { bus.acknowledge(tags) } }

    func requeue(_ tags: [AMQPDeliveryTag]) { unlessCrashed { bus.requeue(tags) } }

    func reject(_ tags: [AMQPDeliveryTag]) { unlessCrashed { bus.reject(tags) } }

    func publish(_ messages: [AMQPMessage]) async throws(AMQPError) -> [AMQPConfirmation] {
        guard !hasCrashed.withLock({ $0 }) else {
            throw AMQPError(.closed, operation: "publish", detail: "the process has crashed")
        }
        return try await bus.publish(messages)
    }

    private func unlessCrashed(_ settle: () -> Void) {
        hasCrashed.withLock { hasCrashed in if !hasCrashed { settle() } }
    }
}
