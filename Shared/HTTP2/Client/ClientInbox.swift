import Synchronization

/// Where callers and the client's event loop meet: calls go in, the event loop takes them out in bursts.
///
/// Only the first call of a burst wakes the event loop; those that follow before it comes are taken along.
final class ClientInbox: Sendable {
    enum Admission {
        /// Taken; the caller must wake the event loop if it is the first of a burst.
        case admitted(isFirst: Bool)
        case full
        case closed
    }

    private struct State {
        var calls: [Call] = []
        var cancelled: [Call] = []
        var isAwaited = false
        var isClosed = false
        var statistics = HTTP2ClientStatistics()
    }

    private let state = Mutex(State())

    func put(_ call: Call, maximum: Int) -> Admission {
        state.withLock { state in
            if state.isClosed { return .closed }
            if state.calls.count + state.statistics.waiting >= maximum { return .full }
            state.calls.append(call)
            defer { state.isAwaited = true }
            return .admitted(isFirst: !state.isAwaited)
        }
    }

    /// Notes a cancellation; true when the caller must wake the event loop.
    func cancel(_ call: Call) -> Bool {
        state.withLock { state in
            state.cancelled.append(call)
            defer { state.isAwaited = true }
            return !state.isAwaited
        }
    }

    /// Everything put in since the last time, on the event loop.
    func take() -> (calls: [Call], cancelled: [Call]) {
        state.withLock { state in
            let taken = (state.calls, state.cancelled)
            state.calls = []
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
