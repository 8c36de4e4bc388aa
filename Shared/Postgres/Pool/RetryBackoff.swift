/// Exponential backoff with a cap and jitter.
struct RetryBackoff: Sendable {
    let first: Duration
    let cap: Duration

    static let reconnecting = RetryBackoff(first: .milliseconds(100), cap: .seconds(5))
    static let transaction = RetryBackoff(first: .milliseconds(5), cap: .milliseconds(200))
    static let migrationLock = RetryBackoff(first: .milliseconds(250), cap: .seconds(5))

    /// - Parameters:
    ///   - failures: the number of failed attempts, from 1.
    ///   - randomness: from 0 up to 1; the delay is 50 % to 100 % of its nominal length.
    func delay(afterFailures failures: Int, randomness: Double) -> Duration {
        let doubled = first * Double(1 << min(max(failures - 1, 0), 20))
        return min(doubled, cap) * (0.5 + randomness / 2)
    }
}
