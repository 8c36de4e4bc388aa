import Synchronization

/// Passes request groups from calling tasks to the client's event loop.
///
/// Only the first submission wakes the event loop. It takes all later ones in the same pass.
final class ClientInbox: Sendable {
    enum Admission {
        /// Admitted; the caller must wake the event loop if this is the first submission since its last pass.
        case admitted(isFirst: Bool)
        case full
        case closed
    }

    private struct State {
        var groups: [RequestGroup] = []
        var cancelled: [RequestGroup] = []
        /// Requests in `groups`.
        var count = 0
        var isWakeUpPending = false
        var isClosed = false
        var statistics = HTTP2ClientStatistics()
    }

    private let state = Mutex(State())

    func put(_ group: RequestGroup, maximum: Int) -> Admission {
        state.withLock { state in
            if state.isClosed { return .closed }
            if state.count + state.statistics.waiting >= maximum { return .full }
            state.groups.append(group)
            state.count += group.members.count
            defer { state.isWakeUpPending = true }
            return .admitted(isFirst: !state.isWakeUpPending)
        }
    }

    /// Records a cancellation; returns whether the caller must wake the event loop.
    func cancel(_ group: RequestGroup) -> Bool {
        state.withLock { state in
            state.cancelled.append(group)
            defer { state.isWakeUpPending = true }
            return !state.isWakeUpPending
        }
    }

    /// Returns all submissions and cancellations since the last call.
    func take() -> (groups: [RequestGroup], cancelled: [RequestGroup]) {
        state.withLock { state in
            let taken = (state.groups, state.cancelled)
            state.groups = []
            state.count = 0
            state.cancelled = []
            state.isWakeUpPending = false
            return taken
        }
    }

    /// Refuses further groups.
    func close() {
        state.withLock { $0.isClosed = true }
    }

    var statistics: HTTP2ClientStatistics {
        get { state.withLock { $0.statistics } }
        set { state.withLock { $0.statistics = newValue } }
    }
}
