internal import AMQP

/// A batch on its way through a stage.
struct Work: Sendable {
    let id: Int
    /// What is not settled yet, in the order of arrival.
    var deliveries: [AMQPDelivery]
    /// Handled one by one, because together they failed.
    var isIsolated = false
    /// A message that may kill the process: nothing else of its queue runs beside it.
    let isSuspect: Bool
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
