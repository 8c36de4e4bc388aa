package import PushProtocol

/// Where one queue of a stage stands, for readiness checks.
package struct QueueStatus: Hashable, Sendable {
    package enum Condition: Hashable, Sendable {
        case starting
        case consuming
        /// A dependency is away: which, as a phrase for people. Messages are held and tried again.
        case holding(String)
        case paused
        case draining
    }

    package let queue: WorkQueue
    package let condition: Condition

    package init(queue: WorkQueue, condition: Condition) {
        self.queue = queue
        self.condition = condition
    }
}

extension QueueStatus.Condition {
    init(_ machine: QueueMachine) {
        switch machine.mode {
        case .paused: self = .paused
        case .draining: self = .draining
        case .running: self = machine.outage.map(QueueStatus.Condition.holding) ?? .consuming
        }
    }
}
