package import AMQP

/// What a stage uses of the bus. `AMQPBus` is the real one; tests have one in memory, held to the same behaviour by one
/// conformance suite.
///
/// Settling is fire and forget: what was not settled when a connection ends is delivered again, so losing an
/// acknowledgement costs a duplicate and never a message.
package protocol MessageBus: Sendable {
    /// Consumes `queue` until cancelled, also across reconnects, with at most `prefetch` unsettled deliveries.
    func subscribe(queue: String, prefetch: UInt16) -> BusSubscription

    /// Settles deliveries for good. Tags of a connection that is gone are dropped.
    func acknowledge(_ tags: [AMQPDeliveryTag])

    /// Gives deliveries back to their queue, for anyone.
    func requeue(_ tags: [AMQPDeliveryTag])

    /// Has the broker move deliveries to the dead-letter exchange of their queue, as they are.
    func reject(_ tags: [AMQPDeliveryTag])

    /// Publishes mandatory, and returns what the broker said to each message, in the same order.
    ///
    /// - Throws: `AMQPError` when nothing can be said: the bus is closed, or the caller was cancelled. Then some of the
    ///   messages may have been published.
    func publish(_ messages: [AMQPMessage]) async throws(AMQPError) -> [AMQPConfirmation]
}

extension AMQPConfirmation {
    /// Whether the broker can never take the message: 406 precondition failed (such as a body above `max_message_size`),
    /// 501 frame error, 502 syntax error. An operator can correct every other cause while the message waits.
    package var isPermanentRefusal: Bool {
        switch self {
        case .returned(406, _), .returned(501, _), .returned(502, _): true
        case .confirmed, .nacked, .returned: false
        }
    }
}

/// One consumer of one queue.
package struct BusSubscription: Sendable {
    /// Deliveries in bursts, as they come. Ends after a cancel, or when the bus closes. Deliveries already lent stay
    /// settleable after the end.
    package let deliveries: AsyncStream<[AMQPDelivery]>
    /// Stops the lending. Returns when no further delivery will be lent.
    package let cancel: @Sendable () async -> Void

    package init(deliveries: AsyncStream<[AMQPDelivery]>, cancel: @escaping @Sendable () async -> Void) {
        self.deliveries = deliveries
        self.cancel = cancel
    }
}
