import AMQP
import ServiceKit
import Synchronization

/// The readiness condition of a broker connection.
///
/// Ignores short interruptions: a restart of the broker should not make every process unready. Publishers hold messages
/// meanwhile.
final class ConnectionCondition: Sendable {
    /// The longest interruption that is ignored.
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
            return .waiting("the broker blocks publishers: \(reason)")
        case .closed:
            return .waiting("closed")
        }
    }
}
