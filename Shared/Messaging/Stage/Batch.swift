internal import AMQP

/// A batch of deliveries of one queue.
struct Batch: Sendable {
    /// The treatment of a batch.
    enum Purpose: Hashable, Sendable {
        /// The handler decides.
        case handling
        /// The runtime moves the messages to a retry level, which resets the broker's delivery count.
        case movingToRetryLevel
    }

    let id: Int
    /// The unsettled deliveries, in order of arrival.
    var deliveries: [AMQPDelivery]
    /// The most messages per call of the handler; `nil` before the first failure.
    var chunkSize: Int?
    /// Whether this is a single message that may have crashed the process. It runs without other batches of its queue.
    let isIsolated: Bool
    var purpose = Purpose.handling
    /// The number of consecutive outages.
    var outages = 0
}

/// The result of running a batch.
enum BatchResult: Sendable {
    case settled
    /// A dependency is unavailable. The batch has the unsettled deliveries.
    case held(Batch, by: String)
    /// Some messages could not be settled and were requeued.
    case requeued
}
