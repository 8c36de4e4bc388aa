import HTTPTypes
import Metrics
import Synchronization

/// Turns callers away that ask too often.
package final class RateGate<Caller: Hashable & Sendable>: Sendable {
    /// The limit's name in the metric: `user`, `key`, `changes`, `unknown-key` or `refused-bearer`.
    private let name: String
    private let uptime: @Sendable () -> ContinuousClock.Instant
    private let limit: Mutex<RateLimit<Caller>>?

    /// - Parameter perMinute: the most requests of one caller a minute, all at once if they like; 0: no limit.
    package convenience init(
        _ name: String, perMinute: Int, capacity: Int = 50_000,
        uptime: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        self.init(name, perMinute, per: .seconds(60), capacity: capacity, uptime: uptime)
    }

    /// - Parameter most: the most of one caller in a window, all at once if they like; 0: no limit.
    package init(
        _ name: String, _ most: Int, per window: Duration, capacity: Int = 50_000,
        uptime: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        self.name = name
        self.uptime = uptime
        limit = most == 0 ? nil : Mutex(RateLimit(most, per: window, capacity: capacity, now: uptime()))
    }

    /// | name | kind | labels | counts |
    /// |---|---|---|---|
    /// | `heliograph_http_requests_limited_total` | counter | caller | requests that were turned away as too many of a user or a key, as too many changes, or as too many unknown keys or bad tokens |
    package func admit(_ caller: Caller) throws(APIRefusal) {
        guard let wait = limit?.withLock({ $0.take(caller, now: uptime()) }) else { return }
        throw refusal(wait)
    }

    /// Turns a caller away whose bucket is empty. Takes nothing from it: ``spend(_:of:)`` does.
    package func check(_ caller: Caller) throws(APIRefusal) {
        guard let wait = limit?.withLock({ $0.wait(caller, now: uptime()) }) else { return }
        throw refusal(wait)
    }

    /// Takes up to `count` out of a caller's bucket.
    package func spend(_ count: Int = 1, of caller: Caller) {
        guard count > 0 else { return }
        limit?.withLock { limit in
            for _ in 0..<count where limit.take(caller, now: uptime()) != nil { return }
        }
    }

    private func refusal(_ wait: Duration) -> APIRefusal {
        Counter(label: "heliograph_http_requests_limited_total", dimensions: [("caller", name)]).increment()
        let seconds = max(1, Int((wait / .seconds(1)).rounded(.up)))
        return APIRefusal(
            status: .tooManyRequests, message: "too many requests; try again in \(seconds) s", retryAfter: seconds)
    }
}
