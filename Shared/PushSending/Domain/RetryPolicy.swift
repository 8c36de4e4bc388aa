package import PushProtocol

/// When a target is sent again, and when it is too late for that (`push-protocols` §0, C.1 of its policies).
///
/// The delay levels of the bus are what waits, so a delay is always one of theirs. Pure: times come in as arguments.
package struct RetryPolicy: Hashable, Sendable {
    /// The first wait where the provider sets no floor.
    package var base: Duration
    /// The longest wait that doubling leads to; a provider's own floor may be longer.
    package var cap: Duration
    /// How long a push is tried: by the clock since its first delivery, and by the waits between its own tries.
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
        /// The next try, at this level, would come after the horizon, and enough were made to fill it.
        case exhausted(RetryLevel)
    }

    /// Decides the fate of a target after its `attempt`-th try (from 1).
    ///
    /// The wait starts at the floor, but at no more than a minute, and doubles; it is never shorter than the floor.
    package func decide(
        floor: Duration, attempt: Int, firstSeen: Timestamp, expiresAt: Timestamp?, now: Timestamp
    ) -> Decision {
        let level = level(floor: floor, attempt: attempt)
        let next = now + level.delay
        if let expiresAt, next >= expiresAt { return .expired }
        return next - firstSeen > horizon && fillsHorizon(floor: floor, attempts: attempt)
            ? .exhausted(level) : .retry(level)
    }

    /// How long a target waits for a lane that is shut for `pause`: the longest level that passes neither the pause nor
    /// the expiration, so that what can still be sent in time is.
    package func hold(for pause: Duration, expiresAt: Timestamp?, now: Timestamp) -> RetryLevel {
        // The pause was measured a moment after it began.
        let limit = pause + .seconds(1)
        let fitting = RetryLevel.allCases.last { level in
            level.delay <= limit && (expiresAt.map { now + level.delay < $0 } ?? true)
        }
        return fitting ?? .seconds5
    }

    private func level(floor: Duration, attempt: Int) -> RetryLevel {
        let start = max(base, min(floor, .seconds(60)))
        let doublings = min(max(attempt, 1) - 1, 20)
        return RetryLevel(atLeast: max(floor, min(cap, start * (1 << doublings))))
    }

    /// Whether `attempts` tries, each with its wait, take as long as the horizon. The clock alone does not tell: time
    /// that a push spent waiting for a shut lane was no try.
    private func fillsHorizon(floor: Duration, attempts: Int) -> Bool {
        var waited = Duration.zero
        for attempt in 1...max(attempts, 1) {
            waited += level(floor: floor, attempt: attempt).delay
            if waited >= horizon { return true }
        }
        return false
    }
}
