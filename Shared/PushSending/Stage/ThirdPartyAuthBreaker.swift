import FoundationEssentials
import PushProtocol
import Synchronization

/// Circuit breaker for the devices that a provider reaches with a key it holds for a third party.
///
/// These are Apple devices and browsers behind FCM, which answers `THIRD_PARTY_AUTH_ERROR` (Firebase: FCM error codes).
/// A registration's platform is unknown here. So each device is blocked from its first rejection until a probe to one
/// of the blocked devices is accepted. Other devices go on.
final class ThirdPartyAuthBreaker: Sendable {
    /// The most blocked devices. Pushes to further ones are sent, rejected and retried.
    static let maxDevices = 100_000

    enum DevicePermit: Hashable, Sendable {
        case allowed
        /// Send to this device, then call ``update(_:probe:)`` in any case.
        case probe
        case blocked(for: Duration, reason: String)
    }

    private struct State {
        var breaker = CircuitBreaker()
        var devices: Set<UUID> = []
    }

    private let clock: SenderClock
    private let changed: @Sendable (CircuitBreaker.Transition) -> Void
    private let state = Mutex(State())

    /// - Parameter changed: called after each transition, outside of locks.
    init(clock: SenderClock, changed: @escaping @Sendable (CircuitBreaker.Transition) -> Void) {
        self.clock = clock
        self.changed = changed
    }

    var openCause: CircuitBreaker.OpenCause? { state.withLock { $0.breaker.openCause } }

    var isEmpty: Bool { state.withLock { $0.devices.isEmpty } }

    func admit(_ device: UUID) -> DevicePermit {
        let now = clock.uptime()
        return state.withLock { state in
            guard state.devices.contains(device) else { return .allowed }
            let reason = state.breaker.openCause?.reason ?? ""
            switch state.breaker.admit(now: now) {
            case .allowed: return .allowed
            case .probe: return .probe
            case .wait: return .blocked(for: .zero, reason: reason)
            case .blocked(let pause, _): return .blocked(for: pause, reason: reason)
            }
        }
    }

    /// Updates the breaker with the rejections of an attempt, and with the result of the device admitted as `probe`.
    func update(_ attempt: inout SendAttempt, probe: UUID?) {
        var isProbeAccepted = false
        var rejected: [UUID: String] = [:]
        for (request, result) in zip(attempt.requests, attempt.results) {
            switch result {
            case .thirdPartyAuthRejected(let reason): rejected[request.target.device] = reason
            case .settled(.unknown): break
            case .settled: if request.target.device == probe { isProbeAccepted = true }
            case .backOff, .throttled, .halted, .rejectedLocally, .deferred, .unreachable, .withdrawn, .withheld: break
            }
        }
        guard probe != nil || !rejected.isEmpty else { return }
        let now = clock.uptime()
        let (transitions, pause) = state.withLock { state in
            var transitions: [CircuitBreaker.Transition?] = []
            if let probe {
                let observation = rejected[probe].map { CircuitBreaker.Observation.misconfigured(reason: $0) }
                transitions.append(
                    state.breaker.recordProbe(observation ?? (isProbeAccepted ? .answered : .nothing), now: now))
                if isProbeAccepted { state.devices = [] }
            }
            // Apple's key may be valid again while the one for browsers is not.
            if let reason = rejected.first(where: { $0.key != probe })?.value {
                transitions.append(state.breaker.record(.misconfigured(reason: reason), now: now))
            }
            for device in rejected.keys where state.devices.count < Self.maxDevices { state.devices.insert(device) }
            return (transitions.compactMap(\.self), state.breaker.pause(now: now))
        }
        attempt.thirdPartyPause = pause
        for transition in transitions { changed(transition) }
    }
}
