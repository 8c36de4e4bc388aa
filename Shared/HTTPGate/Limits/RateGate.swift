import HTTPTypes
import Metrics
import Synchronization

/// Turns callers away that ask too often.
package final class RateGate<Caller: Hashable & Sendable>: Sendable {
    /// What the callers are, for the metric: `user` or `key`.
    private let name: String
    private let uptime: @Sendable () -> ContinuousClock.Instant
    private let limit: Mutex<RateLimit<Caller>>?

    /// - Parameter perMinute: the most requests of one caller a minute, all at once if they like; 0: no limit.
    package init(
        _ name: String, perMinute: Int, capacity: Int = 50_000,
        uptime: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        self.name = name
        self.uptime = uptime
        limit = perMinute == 0 ? nil : Mutex(RateLimit(perMinute: perMinute, capacity: capacity, now: uptime()))
    }

    /// | name | kind | labels | counts |
    /// |---|---|---|---|
    /// | `heliograph_http_requests_limited_total` | counter | caller | requests that were turned away as too many of a user or a key |
    package func admit(_ caller: Caller) throws(APIRefusal) {
        guard let wait = limit?.withLock({ $0.take(caller, now: uptime()) }) else { return }
        Counter(label: "heliograph_http_requests_limited_total", dimensions: [("caller", name)]).increment()
        let seconds = max(1, Int((wait / .seconds(1)).rounded(.up)))
        throw APIRefusal(
            status: .tooManyRequests, message: "too many requests; try again in \(seconds) s", retryAfter: seconds)
    }
}
