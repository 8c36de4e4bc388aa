package import AMQP

/// RabbitMQ as a ``MessageBus``. Publishes on one connection and consumes on another, because a broker alarm blocks
/// publishing connections only (RabbitMQ: Memory and Disk Alarms).
///
/// Owns neither of them: run both as services before the stage in the `ServiceGroup`.
package struct AMQPBus: MessageBus {
    private let publisher: AMQPPublisher
    private let consumer: AMQPConsumer

    package init(publisher: AMQPPublisher, consumer: AMQPConsumer) {
        self.publisher = publisher
        self.consumer = consumer
    }

    package func subscribe(queue: String, prefetch: UInt16) -> BusSubscription {
        let subscription = consumer.subscribe(queue: queue, prefetch: prefetch)
        return BusSubscription(deliveries: subscription.deliveries) { await subscription.cancel() }
    }

    package func acknowledge(_ tags: [AMQPDeliveryTag]) { consumer.acknowledge(tags) }

    package func requeue(_ tags: [AMQPDeliveryTag]) { consumer.requeue(tags) }

    package func reject(_ tags: [AMQPDeliveryTag]) { consumer.reject(tags) }

    package func publish(_ messages: [AMQPMessage]) async throws(AMQPError) -> [AMQPConfirmation] {
        try await publisher.publish(messages)
    }
}
