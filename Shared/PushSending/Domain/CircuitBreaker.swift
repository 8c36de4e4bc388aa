/// Circuit breaker of one provider route, as a pure state machine: the caller passes the time.
///
///     closed ──failure──▶ open ──pause over──▶ halfOpen ──probe answered──▶ closed
///                          ▲                      │
///                          └────probe failed──────┘   (pause doubled)
package struct CircuitBreaker: Sendable {
    /// Why the breaker is open, so that the route sends nothing.
    package enum OpenCause: Hashable, Sendable {
        /// The provider refuses our credential or configuration. Needs an operator.
        case misconfigured(reason: String)
        /// The provider does not answer, or answers every request with an error. Usually temporary.
        case unavailable(reason: String)

        package var reason: String {
            switch self {
            case .misconfigured(let reason), .unavailable(let reason): reason
            }
        }

        fileprivate var pauses: (first: Duration, longest: Duration) {
            switch self {
            case .misconfigured: (.seconds(30), .seconds(15 * 60))
            case .unavailable: (.seconds(5), .seconds(30))
            }
        }
    }

    /// The evidence of one send attempt about the route.
    package enum Observation: Hashable, Sendable {
        /// The provider accepted or rejected targets: the route works.
        case answered
        /// All answers were errors. Opens the breaker after several such attempts in a row.
        case unavailable(reason: String)
        /// No connection could be opened.
        case unreachable(reason: String)
        case misconfigured(reason: String)
        /// No request was sent.
        case nothing
    }

    package enum Permit: Hashable, Sendable {
        case allowed
        /// Send one target, then call ``recordProbe(_:now:)``.
        case probe
        /// Another push is probing: ask again after its ``recordProbe(_:now:)``.
        case wait
        /// Send nothing for this long.
        case blocked(for: Duration, OpenCause)
    }

    package enum Transition: Hashable, Sendable {
        case opened(OpenCause, pause: Duration)
        case closed
    }

    private enum State {
        /// Can transition to `open`. Counts consecutive attempts without an answer.
        case closed(failures: Int)
        /// Can transition to `halfOpen`.
        case open(OpenCause, until: Duration, pause: Duration)
        /// Can transition to `open` and `closed`.
        case halfOpen(OpenCause, pause: Duration)
    }

    /// The consecutive attempts without an answer that open the breaker.
    private let tolerance: Int
    private var state = State.closed(failures: 0)

    package init(tolerance: Int = 5) { self.tolerance = tolerance }

    /// Why the breaker is open or half-open; `nil` while it is closed.
    package var openCause: OpenCause? {
        switch state {
        case .closed: nil
        case .open(let openCause, _, _), .halfOpen(let openCause, _): openCause
        }
    }

    package var isProbing: Bool { if case .halfOpen = state { true } else { false } }

    /// The rest of the pause at `now`; zero without one.
    package func pause(now: Duration) -> Duration {
        switch state {
        case .closed, .halfOpen: .zero
        case .open(_, let until, _): max(until - now, .zero)
        }
    }

    /// Asks to send at `now`, on any monotonic clock.
    package mutating func admit(now: Duration) -> Permit {
        switch state {
        case .closed: return .allowed
        case .halfOpen: return .wait
        case .open(let openCause, let until, let pause):
            guard now >= until else { return .blocked(for: until - now, openCause) }
            state = .halfOpen(openCause, pause: pause)
            return .probe
        }
    }

    /// Ends the pause early, so that the next push probes. For a changed credential.
    package mutating func endPause(now: Duration) {
        guard case .open(let openCause, _, let pause) = state else { return }
        state = .open(openCause, until: now, pause: pause)
    }

    /// Records the result of a push that was admitted as `allowed`.
    package mutating func record(_ observation: Observation, now: Duration) -> Transition? {
        guard case .closed(let failures) = state else { return nil }
        switch observation {
        case .nothing: return nil
        case .answered:
            state = .closed(failures: 0)
            return nil
        case .misconfigured(let reason): return open(.misconfigured(reason: reason), now: now)
        case .unavailable(let reason):
            state = .closed(failures: failures + 1)
            return failures + 1 >= tolerance ? open(.unavailable(reason: reason), now: now) : nil
        case .unreachable(let reason): return open(.unavailable(reason: reason), now: now)
        }
    }

    /// Records the result of the push that was admitted as `probe`.
    package mutating func recordProbe(_ observation: Observation, now: Duration) -> Transition? {
        guard case .halfOpen(let openCause, let pause) = state else { return nil }
        switch observation {
        case .answered:
            state = .closed(failures: 0)
            return .closed
        case .nothing:
            state = .open(openCause, until: now, pause: pause)
            return nil
        case .misconfigured(let reason): return open(.misconfigured(reason: reason), after: pause, now: now)
        case .unavailable(let reason), .unreachable(let reason):
            return open(.unavailable(reason: reason), after: pause, now: now)
        }
    }

    private mutating func open(_ openCause: OpenCause, after last: Duration? = nil, now: Duration) -> Transition {
        let pause = last.map { min($0 * 2, openCause.pauses.longest) } ?? openCause.pauses.first
        state = .open(openCause, until: now + pause, pause: pause)
        return .opened(openCause, pause: pause)
    }
}
