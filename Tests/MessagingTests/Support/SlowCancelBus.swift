import Messaging
import Synchronization
import TestSupport

/// A bus whose broker answers cancellations of consumers late.
final class SlowCancelBus: ForwardingBus {
    let bus: InMemoryBus
    private let gate = Mutex<Gate?>(nil)

    init(_ bus: InMemoryBus) { self.bus = bus }

    /// Holds later cancellations until ``open()``. Deliveries continue.
    func hold() { gate.withLock { $0 = Gate() } }

    func open() { gate.withLock { $0 }?.open() }

    func subscribe(queue: String, prefetch: UInt16) -> BusSubscription {
        let subscription = bus.subscribe(queue: queue, prefetch: prefetch)
        return BusSubscription(deliveries: subscription.deliveries) { [self] in
            await gate.withLock { $0 }?.pass()
            await subscription.cancel()
        }
    }
}
