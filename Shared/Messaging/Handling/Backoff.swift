/// Exponential backoff with full jitter: a random wait from zero to a ceiling that doubles with each failure.
package struct Backoff: Hashable, Sendable {
    /// The ceiling after the first failure.
    package var base: Duration
    /// The highest ceiling.
    package var cap: Duration

    package init(base: Duration = .milliseconds(200), cap: Duration = .seconds(5)) {
        self.base = base
        self.cap = cap
    }

    /// The longest wait after `failures` consecutive failures, from 1.
    package func ceiling(afterFailures failures: Int) -> Duration {
        let doublings = min(max(failures - 1, 0), 30)
        return min(cap, base * (1 << doublings))
    }

    /// A uniformly random wait from zero to the ceiling.
    package func delay(
        afterFailures failures: Int, using generator: inout some RandomNumberGenerator
    ) -> Duration {
        ceiling(afterFailures: failures) * Double.random(in: 0...1, using: &generator)
    }

    package func delay(afterFailures failures: Int) -> Duration {
        var generator = SystemRandomNumberGenerator()
        return delay(afterFailures: failures, using: &generator)
    }
}
