import HTTP2
import HTTP2Server
import Synchronization

/// The requests of a server, and the maximum handled at once.
final class RequestLog: Sendable {
    private struct State {
        var requests: [HTTP2ServerRequest] = []
        var active = 0
        var peak = 0
    }

    private let state = Mutex(State())

    var requests: [HTTP2ServerRequest] { state.withLock { $0.requests } }
    var count: Int { state.withLock { $0.requests.count } }
    var peak: Int { state.withLock { $0.peak } }

    /// Records a request and returns its number, from 1.
    @discardableResult
    func begin(_ request: HTTP2ServerRequest) -> Int {
        state.withLock { state in
            state.requests.append(request)
            state.active += 1
            state.peak = max(state.peak, state.active)
            return state.requests.count
        }
    }

    func end() {
        state.withLock { $0.active -= 1 }
    }

    /// Resets the peak to the current number.
    func resetPeak() {
        state.withLock { $0.peak = $0.active }
    }
}

/// The events of a server, in order.
final class EventLog: Sendable {
    private let state = Mutex<[HTTP2ServerEvent]>([])

    var all: [HTTP2ServerEvent] { state.withLock { $0 } }

    var record: @Sendable (HTTP2ServerEvent) -> Void {
        { event in self.state.withLock { $0.append(event) } }
    }
}
