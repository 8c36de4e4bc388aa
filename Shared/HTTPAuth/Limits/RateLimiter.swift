import HTTPTypes
import Metrics
import Synchronization

/// Rejects callers above their rate limit.
package final class RateLimiter<Caller: Hashable & Sendable>: Sendable {
    /// The limit's name in the metric: `user`, `key`, `changes`, `unknown-key` or `refused-bearer`.
    private let name: String
    private let uptime: @Sendable () -> ContinuousClock.Instant
    private let limit: Mutex<TokenBuckets<Caller>>?

    /// - Parameter perMinute: the maximum requests of one caller a minute, in any distribution; 0 disables the limit.
    package convenience init(
        _ name: String, perMinute: Int, capacity: Int = 50_000,
        uptime: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        self.init(name, perMinute, per: .seconds(60), capacity: capacity, uptime: uptime)
    }

    /// - Parameter maximum: the maximum of one caller in a window, in any distribution; 0 disables the limit.
    package init(
        _ name: String, _ maximum: Int, per window: Duration, capacity: Int = 50_000,
        uptime: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        self.name = name
        self.uptime = uptime
        limit = maximum == 0 ? nil : Mutex(TokenBuckets(maximum, per: window, capacity: capacity, now: uptime()))
    }

    package func admit(_ caller: Caller) throws(APIError) {
        guard let wait = limit?.withLock({ $0.take(caller, now: uptime()) }) else { return }
        throw refusal(wait)
    }

    /// Throws if the caller's bucket is empty. Takes nothing from it; ``spend(_:of:)`` does.
    package func check(_ caller: Caller) throws(APIError) {
        guard let wait = limit?.withLock({ $0.wait(caller, now: uptime()) }) else { return }
        throw refusal(wait)
    }

    /// Takes up to `count` tokens from a caller's bucket.
    package func spend(_ count: Int = 1, of caller: Caller) {
        guard count > 0 else { return }
        limit?.withLock { limit in
            for _ in 0..<count where limit.take(caller, now: uptime()) != nil { return }
        }
    }

    /// Takes tokens from a caller's bucket, also ones that it does not have yet: the caller is then rejected until they
    /// are refilled.
    package func charge(_ count: Int, to caller: Caller) {
        limit?.withLock { $0.charge(count, to: caller, now: uptime()) }
    }

    private func refusal(_ wait: Duration) -> APIError {
        Counter(label: "heliograph_http_requests_limited_total", dimensions: [("caller", name)]).increment()
        let seconds = max(1, Int((wait / .seconds(1)).rounded(.up)))
        return APIError(
            status: .tooManyRequests, message: "too many requests; try again in \(seconds) s", retryAfter: seconds)
    }
}
