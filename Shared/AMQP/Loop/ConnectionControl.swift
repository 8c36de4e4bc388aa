internal import Synchronization

/// The state that a connection's thread shares with other threads: the connection state and the shutdown request.
final class ConnectionControl: Sendable {
    /// The requested shutdown. Only ever moves down this list.
    enum ShutdownState: Comparable, Sendable {
        case running
        /// Finish pending work until this time.
        case graceful(until: ContinuousClock.Instant)
        case now

        private var rank: Int {
            switch self {
            case .running: 0
            case .graceful: 1
            case .now: 2
            }
        }

        static func < (one: ShutdownState, other: ShutdownState) -> Bool { one.rank < other.rank }

        /// Whether to stop waiting for pending work.
        func isPastDeadline(_ now: ContinuousClock.Instant) -> Bool {
            switch self {
            case .running: false
            case .graceful(let deadline): now >= deadline
            case .now: true
            }
        }
    }

    private struct Shared {
        var connection = AMQPConnectionState.connecting(since: .now, lastError: nil)
        var shutdownState = ShutdownState.running
        var hasStarted = false
    }

    let wakeup: Wakeup
    let resources: SystemResources
    private let shared = Mutex(Shared())

    init(_ resources: SystemResources = .real) {
        self.resources = resources
        wakeup = Wakeup(resources)
    }

    var state: AMQPConnectionState {
        get { shared.withLock { $0.connection } }
        set { shared.withLock { $0.connection = newValue } }
    }

    /// Sets the state to connecting. The time of the first loss stays.
    func disconnected(_ error: AMQPError?) {
        shared.withLock { shared in
            switch shared.connection {
            case .connecting(let since, let last):
                shared.connection = .connecting(since: since, lastError: error ?? last)
            case .connected, .blocked: shared.connection = .connecting(since: .now, lastError: error)
            case .closed: break
            }
        }
    }

    var shutdownState: ShutdownState { shared.withLock { $0.shutdownState } }

    func requestShutdown(_ state: ShutdownState) {
        shared.withLock { $0.shutdownState = max($0.shutdownState, state) }
        wakeup.signal()
    }

    /// Marks it as started; false when it was started before.
    func start() -> Bool {
        shared.withLock { shared in
            defer { shared.hasStarted = true }
            return !shared.hasStarted
        }
    }
}
