/// Whether a lane (one app on one of a provider's environments) may send: a pure machine, given the time by its owner.
///
///     closed ──trouble──▶ open ──interval over──▶ probing ──answered──▶ closed
///                          ▲                        │
///                          └────────trouble─────────┘   (interval doubled)
package struct LaneBreaker: Sendable {
    /// Why a lane does not send.
    package enum Trouble: Hashable, Sendable {
        /// Our credential or configuration is refused. A person has to mend it.
        case misconfigured(reason: String)
        /// The provider does not answer, or answers everybody with errors. It passes.
        case unavailable(reason: String)

        package var reason: String {
            switch self {
            case .misconfigured(let reason), .unavailable(let reason): reason
            }
        }

        /// The first pause and the longest one.
        fileprivate var pauses: (first: Duration, longest: Duration) {
            switch self {
            case .misconfigured: (.seconds(30), .seconds(15 * 60))
            case .unavailable: (.seconds(5), .seconds(30))
            }
        }
    }

    /// What a round of requests showed.
    package enum Report: Hashable, Sendable {
        /// The provider took or refused targets: the lane works.
        case answered
        /// Nothing was answered but errors: a few rounds of that are borne.
        case unavailable(reason: String)
        /// No connection could be had.
        case unreachable(reason: String)
        case misconfigured(reason: String)
        /// Nothing reached the wire.
        case nothing
    }

    package enum Admission: Hashable, Sendable {
        case open
        /// Send one target, and report what came of it.
        case probe
        /// Another push is probing: ask again when it has reported.
        case wait
        /// Do not send for so long.
        case closed(for: Duration, Trouble)
    }

    package enum Change: Hashable, Sendable {
        case opened(Trouble, pause: Duration)
        case closed
    }

    private enum State {
        /// Can transition to `open`. Counts the rounds in a row that got no answer.
        case closed(failures: Int)
        /// Can transition to `probing`.
        case open(Trouble, until: Duration, pause: Duration)
        /// Can transition to `open` and `closed`.
        case probing(Trouble, pause: Duration)
    }

    /// How many rounds in a row may go without an answer.
    private let tolerance: Int
    private var state = State.closed(failures: 0)

    package init(tolerance: Int = 5) { self.tolerance = tolerance }

    /// What holds the lane up; `nil` while it works.
    package var trouble: Trouble? {
        switch state {
        case .closed: nil
        case .open(let trouble, _, _), .probing(let trouble, _): trouble
        }
    }

    /// Whether one push has been let through to see if the trouble is over.
    package var isProbing: Bool { if case .probing = state { true } else { false } }

    /// How much of the pause is left at `now`; zero where there is none.
    package func pause(now: Duration) -> Duration {
        switch state {
        case .closed, .probing: .zero
        case .open(_, let until, _): max(until - now, .zero)
        }
    }

    /// Asks to send at `now`, on any monotonic clock.
    package mutating func admit(now: Duration) -> Admission {
        switch state {
        case .closed: return .open
        case .probing: return .wait
        case .open(let trouble, let until, let pause):
            guard now >= until else { return .closed(for: until - now, trouble) }
            state = .probing(trouble, pause: pause)
            return .probe
        }
    }

    /// Ends the pause: what held the lane up may have been mended, so the next push probes.
    package mutating func recheck(now: Duration) {
        guard case .open(let trouble, _, let pause) = state else { return }
        state = .open(trouble, until: now, pause: pause)
    }

    /// Takes the report of a push that was admitted as `open`.
    package mutating func report(_ report: Report, now: Duration) -> Change? {
        guard case .closed(let failures) = state else { return nil }
        switch report {
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

    /// Takes the report of the push that was admitted as `probe`.
    package mutating func reportProbe(_ report: Report, now: Duration) -> Change? {
        guard case .probing(let trouble, let pause) = state else { return nil }
        switch report {
        case .answered:
            state = .closed(failures: 0)
            return .closed
        case .nothing:
            state = .open(trouble, until: now, pause: pause)
            return nil
        case .misconfigured(let reason): return open(.misconfigured(reason: reason), after: pause, now: now)
        case .unavailable(let reason), .unreachable(let reason):
            return open(.unavailable(reason: reason), after: pause, now: now)
        }
    }

    private mutating func open(_ trouble: Trouble, after last: Duration? = nil, now: Duration) -> Change {
        let pause = last.map { min($0 * 2, trouble.pauses.longest) } ?? trouble.pauses.first
        state = .open(trouble, until: now + pause, pause: pause)
        return .opened(trouble, pause: pause)
    }
}
