package import PushProtocol
internal import Primitives

/// Decides when to retry a target, and when to give up.
///
/// Retries wait in the delay queues of the bus, so each delay is a ``RetryLevel``. Pure: the caller passes the time.
package struct RetryPolicy: Hashable, Sendable {
    /// The first delay if the provider sets none.
    package var base = Duration.seconds(10)
    /// The longest delay that doubling leads to. A provider's `floor` may be longer.
    package var cap = Duration.seconds(15 * 60)
    /// How long to retry a push, by the time since its first delivery and by the sum of its delays.
    package var horizon = Duration.seconds(60 * 60)

    /// The most time from a push's first delivery to its last attempt, on a route that does not pause: a delay of at
    /// most ``cap`` may begin just before the horizon.
    package var latestAttempt: Duration { horizon + cap }

    package enum BackoffDecision: Hashable, Sendable {
        case retry(RetryLevel)
        /// The push would expire before the next attempt.
        case expired
        /// The next attempt, at this level, would be after the horizon, and the earlier delays fill the horizon.
        case exhausted(RetryLevel)
    }

    /// Returns the backoff of a target after its `attempt`, counted from 1.
    ///
    /// The delay doubles with each attempt, up to ``cap``, and is never shorter than `floor`.
    package func backoff(
        floor: Duration, attempt: Int, firstSeen: Timestamp, expiresAt: Timestamp?, now: Timestamp
    ) -> BackoffDecision {
        let level = level(floor: floor, attempt: attempt)
        let next = now + level.delay
        if let expiresAt, next >= expiresAt { return .expired }
        return next - firstSeen > horizon && fillsHorizon(floor: floor, attempts: attempt)
            ? .exhausted(level) : .retry(level)
    }

    /// The delay of a target whose route pauses for `pause`.
    ///
    /// Returns the longest level within both the pause and the time to `expiresAt`, so that no push expires needlessly.
    package func hold(for pause: Duration, expiresAt: Timestamp?, now: Timestamp) -> RetryLevel {
        // The pause may have been measured shortly after its start.
        let limit = pause + .seconds(1)
        let fitting = RetryLevel.allCases.last { level in
            level.delay <= limit && (expiresAt.map { now + level.delay < $0 } ?? true)
        }
        return fitting ?? .seconds5
    }

    private func level(floor: Duration, attempt: Int) -> RetryLevel {
        let start = max(base, min(floor, .seconds(60)))
        return RetryLevel(atLeast: max(floor, Backoff(base: start, cap: cap).ceiling(afterFailures: attempt)))
    }

    /// Whether the delays of `attempts` attempts sum up to the horizon. Time on a paused route does not count.
    private func fillsHorizon(floor: Duration, attempts: Int) -> Bool {
        var waited = Duration.zero
        for attempt in 1...max(attempts, 1) {
            waited += level(floor: floor, attempt: attempt).delay
            if waited >= horizon { return true }
        }
        return false
    }
}
