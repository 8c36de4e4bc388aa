internal import Synchronization

/// What the rest of the process shares with a connection's thread: how it stands, and whether it is to end.
final class Link: Sendable {
    /// How the thread was asked to end. Never goes back.
    enum Ending: Comparable, Sendable {
        case running
        /// Finish what is under way, until this moment.
        case graceful(until: ContinuousClock.Instant)
        case now

        private var rank: Int {
            switch self {
            case .running: 0
            case .graceful: 1
            case .now: 2
            }
        }

        static func < (one: Ending, other: Ending) -> Bool { one.rank < other.rank }

        /// Whether waiting for anything more is over.
        func isOver(_ now: ContinuousClock.Instant) -> Bool {
            switch self {
            case .running: false
            case .graceful(let deadline): now >= deadline
            case .now: true
            }
        }
    }

    private struct Shared {
        var connection = AMQPConnectionState.connecting(since: .now, lastError: nil)
        var ending = Ending.running
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

    /// Not connected since when: the first loss counts, whatever failed after it.
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

    var ending: Ending { shared.withLock { $0.ending } }

    func end(_ ending: Ending) {
        shared.withLock { $0.ending = max($0.ending, ending) }
        wakeup.signal()
    }

    /// False the second time.
    func start() -> Bool {
        shared.withLock { shared in
            defer { shared.hasStarted = true }
            return !shared.hasStarted
        }
    }
}
