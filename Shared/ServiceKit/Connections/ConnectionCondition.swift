import AMQP
import Synchronization

/// Whether a connection to the broker is good enough to be given work.
///
/// A short interruption is not told: taking every process out of service because the broker restarts would help nobody,
/// and what the bus does not take is held.
final class ConnectionCondition: Sendable {
    /// How long a connection that was up may be away.
    static let tolerance: Duration = .seconds(30)

    private let wasConnected = Mutex(false)

    func state(of connection: AMQPConnectionState, now: ContinuousClock.Instant = .now) -> Readiness.State {
        switch connection {
        case .connected:
            wasConnected.withLock { $0 = true }
            return .holds
        case .connecting(let since, let error):
            let isBrief = since.duration(to: now) < Self.tolerance
            if isBrief, wasConnected.withLock({ $0 }) { return .holds }
            return .waiting(error.map { "not connected: \($0)" } ?? "not connected yet")
        case .blocked(let reason):
            wasConnected.withLock { $0 = true }
            return .waiting("the broker takes no messages for now: \(reason)")
        case .closed:
            return .waiting("closed")
        }
    }
}
