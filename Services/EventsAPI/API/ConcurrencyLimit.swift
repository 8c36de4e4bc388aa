import HTTPAuth
import HTTPTypes
import Synchronization

/// Limits how many calls run at a time. A call above the limit does not wait.
final class ConcurrencyLimit: Sendable {
    private let maximum: Int
    private let running = Mutex(0)

    init(_ maximum: Int) { self.maximum = maximum }

    /// Runs `body`; returns nil at once if the limit is reached.
    func run<Result>(_ body: () async throws -> Result) async rethrows -> Result? {
        let mayRun = running.withLock { running in
            guard running < maximum else { return false }
            running += 1
            return true
        }
        guard mayRun else { return nil }
        defer { running.withLock { $0 -= 1 } }
        return try await body()
    }
}

extension APIError {
    /// A limit of requests in progress is reached. They last for a moment.
    static var busy: APIError {
        APIError(status: .serviceUnavailable, message: "too many requests are in progress; try again", retryAfter: 1)
    }
}
