package import PushProtocol

/// The status of one queue of a stage, for readiness checks.
package struct QueueStatus: Hashable, Sendable {
    package enum State: Hashable, Sendable {
        case starting
        case consuming
        /// The named dependency is unavailable. Messages are held and retried.
        case holding(String)
        case paused
        case draining
    }

    package let queue: WorkQueue
    package let state: State

    package init(queue: WorkQueue, state: State) {
        self.queue = queue
        self.state = state
    }
}

extension QueueStatus.State {
    init(_ machine: QueueStateMachine) {
        switch machine.mode {
        case .paused: self = .paused
        case .draining: self = .draining
        case .running: self = machine.outage.map(QueueStatus.State.holding) ?? .consuming
        }
    }
}
