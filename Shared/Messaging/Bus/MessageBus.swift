package import AMQP

/// The broker operations that a stage uses. ``AMQPBus`` implements them on RabbitMQ, `InMemoryBus` in tests; one
/// conformance suite covers both.
///
/// Settlements are not confirmed. The broker redelivers every message that was unsettled when a connection ended, so a
/// lost acknowledgement causes a duplicate, never a loss.
package protocol MessageBus: Sendable {
    /// Consumes `queue` until cancelled, also after reconnects, with at most `prefetch` unsettled deliveries.
    func subscribe(queue: String, prefetch: UInt16) -> BusSubscription

    /// Acknowledges deliveries. Ignores tags of a closed connection.
    func acknowledge(_ tags: [AMQPDeliveryTag])

    /// Requeues deliveries for any consumer.
    func requeue(_ tags: [AMQPDeliveryTag])

    /// Rejects deliveries, so that the broker dead-letters them unchanged.
    func reject(_ tags: [AMQPDeliveryTag])

    /// Publishes messages as mandatory, and returns the broker's answer to each in the same order.
    ///
    /// - Throws: `AMQPError` when the bus is closed or the task is cancelled. Some messages may have been published.
    func publish(_ messages: [AMQPMessage]) async throws(AMQPError) -> [AMQPConfirmation]
}

extension MessageBus {
    /// Publishes messages as ``publish(_:)``, and returns `nil` if not all answers arrive within `limit`. Then some of
    /// the messages may have been published.
    package func publish(_ messages: [AMQPMessage], within limit: Duration) async throws -> [AMQPConfirmation]? {
        try await withThrowingTaskGroup(of: [AMQPConfirmation]?.self) { group in
            group.addTask { try await publish(messages) }
            group.addTask {
                try await Task.sleep(for: limit)
                return nil
            }
            defer { group.cancelAll() }
            return try await group.next() ?? nil
        }
    }
}

extension AMQPConfirmation {
    /// Whether a message for any number of queues, also none, is not published again: it is confirmed, no queue is
    /// bound (312 no route), or the broker can never take it.
    package var isFinal: Bool {
        if case .returned(312, _) = self { return true }
        return self == .confirmed || isPermanentRefusal
    }

    /// Whether the broker can never take the message: 406 precondition failed (such as a body above `max_message_size`),
    /// 501 frame error, 502 syntax error. An operator can correct every other cause while the message waits.
    package var isPermanentRefusal: Bool {
        switch self {
        case .returned(406, _), .returned(501, _), .returned(502, _): true
        case .confirmed, .nacked, .returned: false
        }
    }
}

/// A consumer of one queue.
package struct BusSubscription: Sendable {
    /// Deliveries in bursts. Ends after a cancel, or when the bus closes. You can settle the received deliveries after
    /// the end.
    package let deliveries: AsyncStream<[AMQPDelivery]>
    /// Cancels the consumer. Returns after the last delivery.
    package let cancel: @Sendable () async -> Void

    package init(deliveries: AsyncStream<[AMQPDelivery]>, cancel: @escaping @Sendable () async -> Void) {
        self.deliveries = deliveries
        self.cancel = cancel
    }
}
