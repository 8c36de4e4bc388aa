package import PushProtocol

/// How many messages one process may send now under a quota that it shares with others: a pure machine, given the time by
/// its owner.
///
/// The provider grants ``perMinute`` messages in any minute (`push-protocols` B.5). Spent evenly and never saved up for
/// more than a second, the quota cannot be exceeded in a minute that begins anywhere: 61 seconds' worth of a sixty-fourth
/// each. What is left, almost a twentieth, is for the moments in which processes come and go and disagree on their
/// number.
package struct TokenBucket: Sendable {
    /// The whole quota, which all processes together stay under.
    package private(set) var perMinute: Int
    /// After a start, a refusal and a pause the rate grows from a twentieth to all of it.
    package static let ramp = Duration.seconds(60)
    static let rampStart = 0.05

    private var sharers = 1
    private var level = 0.0
    private var updated: Duration
    private var rampBegin: Duration
    private var closedUntil: Duration

    package enum Grant: Hashable, Sendable {
        /// So many may be sent at once: at least one, at most what was asked for.
        case granted(Int)
        /// Nothing now; ask again then.
        case wait(Duration)
    }

    /// - Parameter perMinute: at least one.
    package init(perMinute: Int, now: Duration) {
        self.perMinute = max(perMinute, 1)
        updated = now
        rampBegin = now
        closedUntil = now
    }

    /// Messages a second, this process's share of the quota at `now`.
    package func rate(now: Duration) -> Double {
        guard now >= closedUntil else { return 0 }
        let grown = (now - rampBegin) / Self.ramp
        return Double(perMinute) / 64 / Double(sharers) * min(max(grown, Self.rampStart), 1)
    }

    /// Asks for `wanted` messages. What is bulk leaves a quarter of a second's worth, so that a broadcast which takes all
    /// it can get never keeps an interactive push waiting.
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
        // A little at a time would be as slow, and more work.
        let worthwhile = Double(min(wanted, max(1, Int(capacity / 8))))
        return .wait(max(.seconds((worthwhile + reserve - level) / rate), .milliseconds(1)))
    }

    /// Takes note of how many processes were seen to share the quota; none, where all of them pause: then the last count
    /// holds.
    package mutating func share(among processes: Int, now: Duration) {
        guard processes > 0 else { return }
        refill(now: now)
        sharers = processes
        level = min(level, Self.capacity(at: rate(now: now)))
    }

    /// Nothing was sent for a while, and nobody has counted this process meanwhile: a slow start, until they have.
    package mutating func beginSlowly(now: Duration) {
        refill(now: now)
        rampBegin = max(now, closedUntil)
        level = min(level, Self.capacity(at: rate(now: now)))
    }

    /// Sets the whole quota anew.
    ///
    /// - Parameter perMinute: at least one.
    package mutating func allow(perMinute: Int, now: Duration) {
        refill(now: now)
        self.perMinute = max(perMinute, 1)
        level = min(level, Self.capacity(at: rate(now: now)))
    }

    /// The provider says that the quota is used up: nothing for `pause`, and then a slow start.
    package mutating func refused(for pause: Duration, now: Duration) {
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

    /// One second's worth, but never less than a message.
    private static func capacity(at rate: Double) -> Double { max(rate, 1) }

    /// What sums of fractions may lack of a whole.
    private static let tolerance = 1e-6
}
