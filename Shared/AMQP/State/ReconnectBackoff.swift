internal import Primitives

/// The consecutive failures of one connection or subscription. Pure except for the configured random numbers.
struct ReconnectBackoff {
    private let backoff: Backoff
    private let random: @Sendable () -> Double
    private var failures = 0

    init(_ configuration: AMQPConfiguration) {
        self.init(configuration.backoff, random: configuration.random)
    }

    init(_ backoff: Backoff, random: @escaping @Sendable () -> Double) {
        self.backoff = backoff
        self.random = random
    }

    mutating func next() -> Duration {
        failures += 1
        return backoff.delay(afterFailures: failures, random: random())
    }

    /// The wait after an error that a retry rarely resolves, such as refused credentials: at least seconds.
    mutating func nextAfterRefusal() -> Duration {
        failures = max(failures, 3) + 1
        return backoff.delay(afterFailures: failures, jitter: .equal, random: random())
    }

    mutating func reset() { failures = 0 }
}
