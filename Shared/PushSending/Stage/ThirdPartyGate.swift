import FoundationEssentials
import PushProtocol
import Synchronization

/// The breaker in front of a lane's targets that the provider reaches by another party's key, which it holds for us: iPhones
/// and browsers behind FCM (`push-protocols` B.7, `THIRD_PARTY_AUTH_ERROR`).
///
/// The platform of a registration is not known here. So a device is known from its first refusal on, and waits from then on
/// until one of the known devices is taken again. All other devices go on.
final class ThirdPartyGate: Sendable {
    /// A device beyond these is not known: each of its pushes is refused once more, and waits.
    static let mostDevices = 100_000

    enum Admission: Hashable, Sendable {
        case open
        /// Send to this one device, and have the round judged in any case.
        case probe
        case closed(for: Duration, reason: String)
    }

    private struct State {
        var breaker = LaneBreaker()
        var devices: Set<UUID> = []
    }

    private let clock: SenderClock
    private let changed: @Sendable (LaneBreaker.Change) -> Void
    private let state = Mutex(State())

    /// `changed` is called outside any lock, on the task that reported.
    init(clock: SenderClock, changed: @escaping @Sendable (LaneBreaker.Change) -> Void) {
        self.clock = clock
        self.changed = changed
    }

    var trouble: LaneBreaker.Trouble? { state.withLock { $0.breaker.trouble } }

    /// Whether no device waits, so that none need be asked about.
    var isQuiet: Bool { state.withLock { $0.devices.isEmpty } }

    /// Asks to send to `device`.
    func admit(_ device: UUID) -> Admission {
        let now = clock.uptime()
        return state.withLock { state in
            guard state.devices.contains(device) else { return .open }
            let reason = state.breaker.trouble?.reason ?? ""
            switch state.breaker.admit(now: now) {
            case .open: return .open
            case .probe: return .probe
            case .wait: return .closed(for: .zero, reason: reason)
            case .closed(let pause, _): return .closed(for: pause, reason: reason)
            }
        }
    }

    /// Takes note of the refusals in a round, and of the answer to the device that was admitted as `probe`, if any.
    func judge(_ round: inout PushRound, probe: UUID?) {
        var isProbeTaken = false
        var refused: [UUID: String] = [:]
        for (copy, answer) in zip(round.copies, round.answers) {
            switch answer {
            case .thirdPartyHalted(let reason): refused[copy.target.device] = reason
            case .settled(.unknown): break
            case .settled: if copy.target.device == probe { isProbeTaken = true }
            case .backOff, .throttled, .halted, .refusedHere, .deferred, .unreachable, .withdrawn, .withheld: break
            }
        }
        guard probe != nil || !refused.isEmpty else { return }
        let now = clock.uptime()
        let (changes, pause) = state.withLock { state in
            var changes: [LaneBreaker.Change?] = []
            if let probe {
                let report = refused[probe].map { LaneBreaker.Report.misconfigured(reason: $0) }
                changes.append(state.breaker.reportProbe(report ?? (isProbeTaken ? .answered : .nothing), now: now))
                if isProbeTaken { state.devices = [] }
            }
            // Apple's key may be good by now, and the one for browsers not.
            if let reason = refused.first(where: { $0.key != probe })?.value {
                changes.append(state.breaker.report(.misconfigured(reason: reason), now: now))
            }
            for device in refused.keys where state.devices.count < Self.mostDevices { state.devices.insert(device) }
            return (changes.compactMap(\.self), state.breaker.pause(now: now))
        }
        round.thirdPartyPause = pause
        for change in changes { changed(change) }
    }
}
