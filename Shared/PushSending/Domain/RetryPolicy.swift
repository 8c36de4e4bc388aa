package import PushProtocol

/// When a target is sent again, and when it is too late for that (`push-protocols` §0, C.1 of its policies).
///
/// The delay levels of the bus are what waits, so a delay is always one of theirs. Pure: times come in as arguments.
package struct RetryPolicy: Hashable, Sendable {
    /// The first wait where the provider sets no floor.
    package var base: Duration
    /// The longest wait that doubling leads to; a provider's own floor may be longer.
    package var cap: Duration
    /// How long after the first delivery a push is still tried.
    package var horizon: Duration

    package init(
        base: Duration = .seconds(10), cap: Duration = .seconds(15 * 60), horizon: Duration = .seconds(60 * 60)
    ) {
        self.base = base
        self.cap = cap
        self.horizon = horizon
    }

    package enum Decision: Hashable, Sendable {
        case retry(RetryLevel)
        /// The next try would come after the push's expiration.
        case expired
        /// The next try, at this level, would come after the horizon.
        case exhausted(RetryLevel)
    }

    /// Decides the fate of a target after its `attempt`-th try (from 1).
    ///
    /// The wait starts at the floor, but at no more than a minute, and doubles; it is never shorter than the floor.
    package func decide(
        floor: Duration, attempt: Int, firstSeen: Timestamp, expiresAt: Timestamp?, now: Timestamp
    ) -> Decision {
        let start = max(base, min(floor, .seconds(60)))
        let doublings = min(max(attempt, 1) - 1, 20)
        let level = RetryLevel(atLeast: max(floor, min(cap, start * (1 << doublings))))
        let next = now + level.delay
        if let expiresAt, next >= expiresAt { return .expired }
        return next - firstSeen > horizon ? .exhausted(level) : .retry(level)
    }
}
