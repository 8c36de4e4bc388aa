import AMQP
import Messaging
import PushProtocol
import Synchronization
import TestSupport

/// Collects deliveries without settling them.
final class DeliveryCollector: Sendable {
    private let subscription: BusSubscription
    private let store = Store()

    private final class Store: Sendable {
        let taken = Mutex<[AMQPDelivery]>([])
        let hasEnded = Mutex(false)
    }

    init(_ bus: any MessageBus, queue name: String = queue.name, prefetch: UInt16) {
        let subscription = bus.subscribe(queue: name, prefetch: prefetch)
        self.subscription = subscription
        Task { [store] in
            for await burst in subscription.deliveries { store.taken.withLock { $0 += burst } }
            store.hasEnded.withLock { $0 = true }
        }
    }

    var taken: [AMQPDelivery] { store.taken.withLock { $0 } }
    var texts: [String] { taken.map(\.text) }

    func wait(for count: Int) async throws -> [AMQPDelivery] {
        try await eventually("\(count) deliveries") { taken.count >= count }
        return taken
    }

    func cancel() async { await subscription.cancel() }

    /// Waits for the end of the stream.
    func end() async throws { try await eventually("the end") { store.hasEnded.withLock { $0 } } }
}

extension AMQPDelivery {
    var text: String { String(decoding: body, as: UTF8.self) }
}

extension AMQPMessage {
    /// An event of the app `demo`.
    static func event(_ text: String) -> AMQPMessage {
        AMQPMessage(exchange: "events", routingKey: "demo.happened", body: Array(text.utf8))
    }
}
