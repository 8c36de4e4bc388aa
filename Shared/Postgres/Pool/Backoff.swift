/// How long to wait before trying again: doubling, capped, and spread so that those who failed together do not return
/// together.
struct Backoff: Sendable {
    let first: Duration
    let cap: Duration

    static let reconnecting = Backoff(first: .milliseconds(100), cap: .seconds(5))
    static let transaction = Backoff(first: .milliseconds(5), cap: .milliseconds(200))
    static let migrationLock = Backoff(first: .milliseconds(250), cap: .seconds(5))

    /// - Parameters:
    ///   - failures: how many attempts have failed, from 1.
    ///   - randomness: from 0 up to 1; the wait is between a half and the whole of its nominal length.
    func delay(afterFailures failures: Int, randomness: Double) -> Duration {
        let doubled = first * Double(1 << min(max(failures - 1, 0), 20))
        return min(doubled, cap) * (0.5 + randomness / 2)
    }
}
