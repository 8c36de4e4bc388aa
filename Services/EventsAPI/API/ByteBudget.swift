import HTTPAuth
import HTTPTypes
import Metrics
import Synchronization

/// Limits the memory of the request bodies in progress.
final class ByteBudget: Sendable {
    /// The `Retry-After` of a refused request, in seconds.
    private static let retryAfter = 1

    private let limit: Int
    private let used = Mutex(0)

    /// - Parameter limit: the maximum of all bodies together, in bytes.
    init(_ limit: Int) { self.limit = limit }

    /// Runs `body` while `bytes` are reserved. A request larger than the whole budget runs alone.
    ///
    /// | name | kind | counts |
    /// |---|---|---|
    /// | `heliograph_events_api_busy_total` | counter | requests refused for the bodies in progress |
    ///
    /// - Throws: 503 while the budget is used up.
    func reserving<Result>(_ bytes: Int, _ body: () async throws -> Result) async throws -> Result {
        let isReserved = used.withLock { used in
            guard used == 0 || used + bytes <= limit else { return false }
            used += bytes
            return true
        }
        guard isReserved else {
            Counter(label: "heliograph_events_api_busy_total").increment()
            throw APIError(
                status: .serviceUnavailable, message: "too many requests are in progress; try again",
                retryAfter: Self.retryAfter)
        }
        defer { used.withLock { $0 -= bytes } }
        return try await body()
    }
}
