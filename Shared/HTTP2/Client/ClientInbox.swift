import Synchronization

/// Where callers and the client's event loop meet: bursts of calls go in, the event loop takes them out.
///
/// Only the first one wakes the event loop; those that follow before it comes are taken along.
final class ClientInbox: Sendable {
    enum Admission {
        /// Taken; the caller must wake the event loop if it is the first since it last came.
        case admitted(isFirst: Bool)
        case full
        case closed
    }

    private struct State {
        var bursts: [Burst] = []
        var cancelled: [Burst] = []
        /// Calls in `bursts`.
        var count = 0
        var isAwaited = false
        var isClosed = false
        var statistics = HTTP2ClientStatistics()
    }

    private let state = Mutex(State())

    func put(_ burst: Burst, maximum: Int) -> Admission {
        state.withLock { state in
            if state.isClosed { return .closed }
            if state.count + state.statistics.waiting >= maximum { return .full }
            state.bursts.append(burst)
            state.count += burst.calls.count
            defer { state.isAwaited = true }
            return .admitted(isFirst: !state.isAwaited)
        }
    }

    /// Notes a cancellation; true when the caller must wake the event loop.
    func cancel(_ burst: Burst) -> Bool {
        state.withLock { state in
            state.cancelled.append(burst)
            defer { state.isAwaited = true }
            return !state.isAwaited
        }
    }

    /// Everything put in since the last time, on the event loop.
    func take() -> (bursts: [Burst], cancelled: [Burst]) {
        state.withLock { state in
            let taken = (state.bursts, state.cancelled)
            state.bursts = []
            state.count = 0
            state.cancelled = []
            state.isAwaited = false
            return taken
        }
    }

    /// Refuses calls from now on.
    func close() {
        state.withLock { $0.isClosed = true }
    }

    var statistics: HTTP2ClientStatistics {
        get { state.withLock { $0.statistics } }
        set { state.withLock { $0.statistics = newValue } }
    }
}
