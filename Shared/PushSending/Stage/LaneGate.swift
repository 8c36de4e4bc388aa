package import PushProtocol
import Synchronization

/// One app on one of a provider's environments: what a credential, a connection pool and a breaker belong to.
package struct LaneKey: Hashable, Sendable, CustomStringConvertible {
    package var app: AppID
    package var environment: ProviderEnvironment

    package init(app: AppID, environment: ProviderEnvironment) {
        self.app = app
        self.environment = environment
    }

    /// The lane that `push` goes over.
    init(of push: Push) { self.init(app: push.app, environment: push.environment) }

    package var description: String { "\(app)/\(environment.rawValue)" }
}

/// The breaker of one lane, shared by all pushes in hand: the shell around ``LaneBreaker``.
final class LaneGate: Sendable {
    enum Admission: Hashable, Sendable {
        case open
        /// Send one target, then call ``reportProbe(_:)``, whatever comes.
        case probe
        case closed(for: Duration, LaneBreaker.Trouble)
    }

    private struct State {
        var breaker = LaneBreaker()
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let clock: SenderClock
    private let changed: @Sendable (LaneBreaker.Change) -> Void
    private let state = Mutex(State())
    private let suspicion = Mutex(SuspicionMonitor())
    let thirdParty: ThirdPartyGate

    /// `changed` and `thirdPartyChanged` are called outside any lock, on the task that reported.
    init(
        clock: SenderClock, thirdPartyChanged: @escaping @Sendable (LaneBreaker.Change) -> Void = { _ in },
        changed: @escaping @Sendable (LaneBreaker.Change) -> Void
    ) {
        self.clock = clock
        self.changed = changed
        thirdParty = ThirdPartyGate(clock: clock, changed: thirdPartyChanged)
    }

    var trouble: LaneBreaker.Trouble? { state.withLock { $0.breaker.trouble } }

    /// Asks to send. While another push probes, waits for its report, which a request's deadline and the
    /// wait for a quota bound.
    func admit() async -> Admission {
        while true {
            switch state.withLock({ $0.breaker.admit(now: clock.uptime()) }) {
            case .open: return .open
            case .probe: return .probe
            case .closed(let pause, let trouble): return .closed(for: pause, trouble)
            case .wait: await probeReported()
            }
        }
    }

    /// Whether the lane is shut, its pause over, and nobody probes it: then the caller does, and calls
    /// ``reportProbe(_:)``, whatever comes. Never during a storm.
    func takesProbe() -> Bool {
        guard !suspicion.withLock({ $0.isStorm }) else { return false }
        return state.withLock { $0.breaker.admit(now: clock.uptime()) == .probe }
    }

    /// Lets the next push probe at once, if the lane is shut.
    func recheck() { state.withLock { $0.breaker.recheck(now: clock.uptime()) } }

    /// Looks at the answers of a round together, after the other addresses of its targets were tried.
    ///
    /// When they are part of a storm of refused tokens, the lane is at fault and not the tokens: those that were doubted
    /// are left for later, and the round reports the lane as misconfigured. Otherwise the tokens that the other
    /// environment was not asked about are refused without doubt.
    func judge(_ round: inout PushRound, isProbe: Bool) {
        let answers = round.answers.count { $0.isAboutTarget }
        let doubted = round.answers.indices.filter { place in
            round.answers[place].doubtsToken && !(round.isMisplaced && round.unheard.contains(place))
        }
        let storm = suspicion.withLock { suspicion in
            suspicion.note(
                answers: answers, doubts: doubted.map { round.copies[$0].target.owner }, isProbe: isProbe,
                now: clock.uptime())
        }
        defer { for place in round.unheard { round.answers[place] = round.answers[place].withoutDoubt } }
        guard let storm else { return }
        round.storm = storm
        for index in doubted { round.answers[index] = .backOff(floor: SuspicionMonitor.window, reason: storm) }
    }

    /// What feedback has to be told now of a storm on this lane, with whichever push is settled next.
    func news() -> LanePulse.Storm? {
        let uptime = clock.uptime()
        guard let time = suspicion.withLock({ $0.news(now: uptime) }) else { return nil }
        let now = clock.now()
        return LanePulse.Storm(since: now + (time.lowerBound - uptime), until: now + (time.upperBound - uptime))
    }

    func report(_ report: LaneBreaker.Report) {
        if let change = state.withLock({ $0.breaker.report(report, now: clock.uptime()) }) { changed(change) }
    }

    func reportProbe(_ report: LaneBreaker.Report) {
        let (change, waiting) = state.withLock { state in
            defer { state.waiting = [] }
            return (state.breaker.reportProbe(report, now: clock.uptime()), state.waiting)
        }
        for continuation in waiting { continuation.resume() }
        if let change { changed(change) }
    }

    private func probeReported() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                // The probe may have reported between the admission and here.
                guard state.breaker.isProbing else { return true }
                state.waiting.append(continuation)
                return false
            }
            if isOver { continuation.resume() }
        }
    }
}

extension GatewayAnswer {
    /// The same refusal, with nothing held against the token.
    fileprivate var withoutDoubt: GatewayAnswer {
        guard case .settled(.rejected(let reason, suspectToken: true)) = self else { return self }
        return .settled(.rejected(reason: reason, suspectToken: false))
    }

    /// Whether the provider refused this target for a reason that may lie in its token.
    fileprivate var doubtsToken: Bool {
        if case .settled(.rejected(let reason, suspectToken: true)) = self {
            SuspicionMonitor.reasons.contains(reason)
        } else {
            false
        }
    }

    /// Whether the provider spoke about this target.
    fileprivate var isAboutTarget: Bool {
        switch self {
        case .settled(.unknown): false
        case .settled, .throttled, .thirdPartyHalted: true
        case .backOff, .halted, .refusedHere, .deferred, .unreachable, .withdrawn, .withheld: false
        }
    }
}
