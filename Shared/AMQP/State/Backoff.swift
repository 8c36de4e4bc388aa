/// How long to wait between tries: full jitter over an exponential.
package struct BackoffPolicy: Sendable {
    package var base: Duration
    package var cap: Duration
    /// A number in 0..<1, drawn once for each wait. Seeded in tests.
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

/// The waits of one thing that keeps being tried. Pure but for the policy's randomness.
///
/// The n-th wait (from 0) is uniform in 0 ..< min(cap, base × 2ⁿ), so that a thousand clients of one broker that came
/// back do not arrive together.
struct Backoff {
    let policy: BackoffPolicy
    private(set) var attempts = 0

    init(_ policy: BackoffPolicy) { self.policy = policy }

    private var ceiling: Duration { min(policy.cap, policy.base * (1 << min(attempts, 20))) }

    mutating func next() -> Duration {
        defer { attempts += 1 }
        return ceiling * policy.random()
    }

    /// A wait for what will hardly heal by itself (a refused login): seconds from the first, and never near zero.
    mutating func nextLong() -> Duration {
        attempts = max(attempts, 3)
        defer { attempts += 1 }
        return ceiling * (0.5 + policy.random() / 2)
    }

    mutating func reset() { attempts = 0 }
}
