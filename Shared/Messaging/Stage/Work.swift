internal import AMQP

/// A batch on its way through a stage.
struct Work: Sendable {
    /// The purpose of a batch.
    enum Purpose: Hashable, Sendable {
        /// The handler decides about it.
        case handling
        /// The runtime moves its messages to a retry level, so that the broker counts their returns from 0.
        case settingAside
    }

    let id: Int
    /// What is not settled yet, in the order of arrival.
    var deliveries: [AMQPDelivery]
    /// The most messages for one call of the handler; `nil` before the first failure.
    var portion: Int?
    /// A message that may kill the process: nothing else of its queue runs beside it.
    let isSuspect: Bool
    var purpose = Purpose.handling
    /// How often in a row it met an outage.
    var outages = 0
}

/// How a run of a batch ended.
enum WorkResult: Sendable {
    case settled
    /// A dependency is away. The work says what is left to do.
    case held(Work, by: String)
    /// Some messages could not be settled and went back to the queue.
    case givenBack
}
