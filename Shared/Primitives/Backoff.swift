/// Exponential backoff: the longest wait doubles with each consecutive failure, up to a cap. Jitter shortens it, so that
/// many clients do not retry at the same time.
package struct Backoff: Hashable, Sendable {
    /// The random part of a wait.
    package enum Jitter: Hashable, Sendable {
        /// From zero to the ceiling.
        case full
        /// From half the ceiling to the ceiling, for peers that must not be flooded.
        case equal
    }

    /// The ceiling after the first failure.
    package var base: Duration
    /// The highest ceiling.
    package var cap: Duration

    package init(base: Duration, cap: Duration) {
        self.base = base
        self.cap = cap
    }

    /// The longest wait after `failures` consecutive failures, from 1.
    package func ceiling(afterFailures failures: Int) -> Duration {
        let doublings = min(max(failures, 1) - 1, 30)
        return min(cap, base * (1 << doublings))
    }

    /// The wait after `failures` consecutive failures, from 1.
    ///
    /// - Parameter random: the position between the shortest and the longest wait, from 0 to 1.
    package func delay(
        afterFailures failures: Int, jitter: Jitter = .full, random: Double = .random(in: 0...1)
    ) -> Duration {
        let ceiling = ceiling(afterFailures: failures)
        return switch jitter {
        case .full: ceiling * random
        case .equal: ceiling * (0.5 + random / 2)
        }
    }
}
