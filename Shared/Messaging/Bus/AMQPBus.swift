package import AMQP

/// The bus as RabbitMQ speaks it: one connection out, one in, so that a broker which stops taking publishes still takes
/// acknowledgements.
///
/// Owns neither: both are services of their own, and stand before the stage in the `ServiceGroup`.
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
