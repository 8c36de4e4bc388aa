import PushProtocol
import Synchronization

/// The circuit breaker of one route, shared by all its pushes: a thread-safe ``CircuitBreaker`` that callers wait for.
final class RouteCircuitBreaker: Sendable {
    enum RoutePermit: Hashable, Sendable {
        case allowed
        /// Send one target, then call ``recordProbe(_:)`` in any case.
        case probe
        case blocked(for: Duration, CircuitBreaker.OpenCause)
    }

    private struct State {
        var breaker = CircuitBreaker()
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let clock: SenderClock
    private let changed: @Sendable (CircuitBreaker.Transition) -> Void
    private let state = Mutex(State())
    private let badTokens = Mutex(BadTokenRateDetector())
    let thirdParty: ThirdPartyAuthBreaker

    /// Creates a closed breaker.
    ///
    /// - Parameters:
    ///   - thirdPartyChanged: called after each transition of ``thirdParty``, outside of locks.
    ///   - changed: called after each transition, outside of locks.
    init(
        clock: SenderClock, thirdPartyChanged: @escaping @Sendable (CircuitBreaker.Transition) -> Void = { _ in },
        changed: @escaping @Sendable (CircuitBreaker.Transition) -> Void
    ) {
        self.clock = clock
        self.changed = changed
        thirdParty = ThirdPartyAuthBreaker(clock: clock, changed: thirdPartyChanged)
    }

    var openCause: CircuitBreaker.OpenCause? { state.withLock { $0.breaker.openCause } }

    /// Asks to send. Waits for the result while another push probes; request deadlines and quota waits bound the wait.
    func admit() async -> RoutePermit {
        while true {
            switch state.withLock({ $0.breaker.admit(now: clock.uptime()) }) {
            case .allowed: return .allowed
            case .probe: return .probe
            case .blocked(let pause, let openCause): return .blocked(for: pause, openCause)
            case .wait: await probeRecorded()
            }
        }
    }

    /// Claims the probe if the pause is over and no push probes. Then call ``recordProbe(_:)`` in any case.
    ///
    /// Returns false during a spike of bad tokens.
    func claimProbe() -> Bool {
        guard !badTokens.withLock({ $0.isSpike }) else { return false }
        return state.withLock { $0.breaker.admit(now: clock.uptime()) == .probe }
    }

    /// Ends the pause, so that the next push probes.
    func endPause() { state.withLock { $0.breaker.endPause(now: clock.uptime()) } }

    /// Checks the results of an attempt for a spike of bad tokens. Call it after the fallbacks.
    ///
    /// In a spike the route is at fault: its suspect tokens are retried later, and the attempt opens the breaker.
    /// Otherwise tokens without a confirmation by the other environment become rejections without suspicion.
    func detectSpike(_ attempt: inout SendAttempt, isProbe: Bool) {
        let answers = attempt.results.count { $0.isAboutTarget }
        let suspected = attempt.results.indices.filter { index in
            attempt.results[index].suspectsToken
                && !(attempt.isLikelyWrongEnvironment && attempt.unconfirmed.contains(index))
        }
        let spike = badTokens.withLock { badTokens in
            badTokens.record(
                answers: answers, suspects: suspected.map { attempt.requests[$0].target.owner }, isProbe: isProbe,
                now: clock.uptime())
        }
        defer {
            for index in attempt.unconfirmed { attempt.results[index] = attempt.results[index].withoutSuspicion }
        }
        guard let spike else { return }
        attempt.spike = spike
        for index in suspected { attempt.results[index] = .backOff(floor: BadTokenRateDetector.window, reason: spike) }
    }

    /// The spike to report to feedback now, by the time of day.
    func spikeToReport() -> RouteHealth.BadTokenSpike? {
        let uptime = clock.uptime()
        guard let time = badTokens.withLock({ $0.spikeToReport(now: uptime) }) else { return nil }
        let now = clock.now()
        return RouteHealth.BadTokenSpike(
            since: now + (time.lowerBound - uptime), until: now + (time.upperBound - uptime))
    }

    func record(_ observation: CircuitBreaker.Observation) {
        if let transition = state.withLock({ $0.breaker.record(observation, now: clock.uptime()) }) {
            changed(transition)
        }
    }

    func recordProbe(_ observation: CircuitBreaker.Observation) {
        let (transition, waiting) = state.withLock { state in
            defer { state.waiting = [] }
            return (state.breaker.recordProbe(observation, now: clock.uptime()), state.waiting)
        }
        for continuation in waiting { continuation.resume() }
        if let transition { changed(transition) }
    }

    private func probeRecorded() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                // The probe may have ended since the admission.
                guard state.breaker.isProbing else { return true }
                state.waiting.append(continuation)
                return false
            }
            if isOver { continuation.resume() }
        }
    }
}

extension SendResult {
    /// The same rejection, without suspicion of the token.
    fileprivate var withoutSuspicion: SendResult {
        guard case .settled(.rejected(let reason, suspectToken: true)) = self else { return self }
        return .settled(.rejected(reason: reason, suspectToken: false))
    }

    /// Whether the provider rejected the target for a reason that may be its token.
    fileprivate var suspectsToken: Bool {
        if case .settled(.rejected(let reason, suspectToken: true)) = self {
            BadTokenRateDetector.reasons.contains(reason)
        } else {
            false
        }
    }

    /// Whether the provider answered about this target.
    fileprivate var isAboutTarget: Bool {
        switch self {
        case .settled(.unknown): false
        case .settled, .throttled, .thirdPartyAuthRejected: true
        case .backOff, .halted, .rejectedLocally, .deferred, .unreachable, .withdrawn, .withheld: false
        }
    }
}
