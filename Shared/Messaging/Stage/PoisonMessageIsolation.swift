internal import AMQP
internal import PushProtocol

/// Decides which deliveries are handled alone, because they may have crashed the process.
///
/// A redelivered message is handled alone, so that another crash increments the delivery count of that message only,
/// and not of the other unsettled messages. After a few redelivered messages succeeded, the others are handled
/// normally. A message with many returns always stays alone.
struct PoisonMessageIsolation: Sendable {
    /// The number of successes after which redelivered messages are handled normally.
    static let requiredSuccesses = 3
    /// A message with this many returns is always handled alone.
    static let maximumRedeliveries: Int64 = 3

    /// Whether a pause keeps a message that was not started. Other messages are requeued for other consumers. The
    /// broker counts each return, so repeated pauses would isolate and finally dead-letter every waiting message.
    static func keepsWhilePaused(_ delivery: AMQPDelivery) -> Bool { delivery.deliveryCount >= maximumRedeliveries - 1 }

    /// Whether a message used half of the delivery limit. It then moves to a retry level instead of being requeued; the
    /// other half remains for crashes and connection losses.
    static func isNearDeliveryLimit(_ delivery: AMQPDelivery) -> Bool {
        delivery.deliveryCount >= Topology.deliveryLimit / 2
    }

    private var successes = 0

    func mustIsolate(_ delivery: AMQPDelivery) -> Bool {
        guard delivery.redelivered else { return false }
        return successes < PoisonMessageIsolation.requiredSuccesses
            || delivery.deliveryCount >= PoisonMessageIsolation.maximumRedeliveries
    }

    /// Records that an isolated message was handled without a crash.
    mutating func noteSuccess() { successes += 1 }

    /// Records a first delivery: later redeliveries have another cause.
    mutating func noteFirstDelivery() { successes = 0 }
}
