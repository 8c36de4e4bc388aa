package import AMQP
package import Messaging

/// A bus that forwards to another one. A conforming type overrides calls.
package protocol ForwardingBus: MessageBus {
    associatedtype Target: MessageBus
    var bus: Target { get }
}

extension ForwardingBus {
    package func subscribe(queue: String, prefetch: UInt16) -> BusSubscription {
        bus.subscribe(queue: queue, prefetch: prefetch)
    }
    package func acknowledge(_ tags: [AMQPDeliveryTag]) { bus.acknowledge(tags) }
    package func requeue(_ tags: [AMQPDeliveryTag]) { bus.requeue(tags) }
    package func reject(_ tags: [AMQPDeliveryTag]) { bus.reject(tags) }
    package func publish(_ messages: [AMQPMessage]) async throws(AMQPError) -> [AMQPConfirmation] {
        try await bus.publish(messages)
    }
}
