package import PushProtocol

/// Token bucket of one process, for a provider quota that several processes share. Pure: the caller passes the time.
///
/// The provider allows ``perMinute`` messages in any minute (Firebase: FCM throttling and quotas). The bucket refills
/// with a sixty-fourth of that a second and holds one second's worth. So no minute gets more than 61/64 of the quota.
/// The rest, almost a twentieth, covers moments in which processes disagree on their number.
package struct TokenBucket: Sendable {
    /// The quota of all processes together.
    package private(set) var perMinute: Int
    /// How long the rate takes to grow from a twentieth to all of it, after a start, a refusal or a pause.
    package static let ramp = Duration.seconds(60)
    static let rampStart = 0.05

    private var sharers = 1
    private var level = 0.0
    private var updated: Duration
    private var rampBegin: Duration
    private var closedUntil: Duration

    package enum Grant: Hashable, Sendable {
        /// The number of messages to send now, from 1 to the number asked for.
        case granted(Int)
        /// Send nothing now; ask again after this time.
        case wait(Duration)
    }

    /// - Parameter perMinute: the quota of all processes, at least 1.
    package init(perMinute: Int, now: Duration) {
        self.perMinute = max(perMinute, 1)
        updated = now
        rampBegin = now
        closedUntil = now
    }

    /// This process's share of the quota at `now`, in messages a second.
    package func rate(now: Duration) -> Double {
        guard now >= closedUntil else { return 0 }
        let grown = (now - rampBegin) / Self.ramp
        return Double(perMinute) / 64 / Double(sharers) * min(max(grown, Self.rampStart), 1)
    }

    /// Asks for `wanted` messages. The bulk lane leaves a quarter of the bucket for interactive pushes.
    package mutating func take(_ wanted: Int, _ lane: Lane, now: Duration) -> Grant {
        refill(now: now)
        guard now >= closedUntil else { return .wait(closedUntil - now) }
        let rate = rate(now: now)
        let capacity = Self.capacity(at: rate)
        let reserve =
            switch lane {
            case .interactive: 0.0
            case .bulk: min(capacity / 4, capacity - 1)
            }
        let available = Int(level - reserve + Self.tolerance)
        if available >= 1 {
            let granted = min(wanted, available)
            level -= Double(granted)
            return .granted(granted)
        }
        // Smaller grants would be as slow and cost more work.
        let worthwhile = Double(min(wanted, max(1, Int(capacity / 8))))
        return .wait(max(.seconds((worthwhile + reserve - level) / rate), .milliseconds(1)))
    }

    /// Sets the number of processes that share the quota. Ignores 0, which means that all of them pause.
    package mutating func share(among processes: Int, now: Duration) {
        guard processes > 0 else { return }
        refill(now: now)
        sharers = processes
        level = min(level, Self.capacity(at: rate(now: now)))
    }

    /// Restarts the ramp after a pause, until the other processes count this one again.
    package mutating func restartRamp(now: Duration) {
        refill(now: now)
        rampBegin = max(now, closedUntil)
        level = min(level, Self.capacity(at: rate(now: now)))
    }

    /// Changes the quota of all processes.
    ///
    /// - Parameter perMinute: at least 1.
    package mutating func setLimit(perMinute: Int, now: Duration) {
        refill(now: now)
        self.perMinute = max(perMinute, 1)
        level = min(level, Self.capacity(at: rate(now: now)))
    }

    /// Sends nothing for `pause`, then restarts the ramp: the provider says that the quota is exhausted.
    package mutating func pauseSending(for pause: Duration, now: Duration) {
        refill(now: now)
        closedUntil = max(closedUntil, now + pause)
        rampBegin = closedUntil
        level = 0
    }

    private mutating func refill(now: Duration) {
        guard now > updated else { return }
        let rate = rate(now: now)
        level = min(level + rate * ((now - max(updated, closedUntil)) / .seconds(1)), Self.capacity(at: rate))
        level = max(level, 0)
        updated = now
    }

    /// One second's worth, at least one message.
    private static func capacity(at rate: Double) -> Double { max(rate, 1) }

    /// The rounding error of sums of fractions.
    private static let tolerance = 1e-6
}
