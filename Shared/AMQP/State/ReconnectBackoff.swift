/// Exponential backoff with full jitter.
package struct BackoffPolicy: Sendable {
    package var base: Duration
    package var cap: Duration
    /// Returns a number in 0..<1. Called once per wait; seeded in tests.
    package var random: @Sendable () -> Double

    package init(
        base: Duration = .milliseconds(500), cap: Duration = .seconds(30),
        random: @escaping @Sendable () -> Double = { Double.random(in: 0..<1) }
    ) {
        self.base = base
        self.cap = cap
        self.random = random
    }
}

/// The state of one backoff. Pure except for the policy's random numbers.
///
/// The n-th wait (from 0) is uniform in 0 ..< min(cap, base × 2ⁿ), so that many clients do not reconnect at the same
/// time.
struct ReconnectBackoff {
    let policy: BackoffPolicy
    private(set) var attempts = 0

    init(_ policy: BackoffPolicy) { self.policy = policy }

    private var ceiling: Duration { min(policy.cap, policy.base * (1 << min(attempts, 20))) }

    mutating func next() -> Duration {
        defer { attempts += 1 }
        return ceiling * policy.random()
    }

    /// The wait after an error that a retry rarely resolves, such as refused credentials: at least seconds.
    mutating func nextAfterRefusal() -> Duration {
        attempts = max(attempts, 3)
        defer { attempts += 1 }
        return ceiling * (0.5 + policy.random() / 2)
    }

    mutating func reset() { attempts = 0 }
}
