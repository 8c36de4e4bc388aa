import HTTPAuth
import Metrics
import PushProtocol
import Synchronization

/// Limits the memory of the request bodies in progress, of all apps and of each.
///
/// One app may use half of the budget, so that its publishers cannot stop those of the others.
final class ByteBudget: Sendable {
    private struct Usage {
        var total = 0
        var byApp: [AppID: Int] = [:]
    }

    private let limit: Int
    private let used = Mutex(Usage())

    /// - Parameter limit: the maximum of all bodies together, in bytes.
    init(_ limit: Int) { self.limit = limit }

    /// Runs `body` while `bytes` are reserved for an app. A request that is larger than a limit runs while nothing else
    /// counts against that limit.
    ///
    /// - Throws: 503 while the budget or the app's share of it is used up.
    func reserving<Result>(_ bytes: Int, for app: AppID, _ body: () async throws -> Result) async throws -> Result {
        let isReserved = used.withLock { used in
            let ofApp = used.byApp[app, default: 0]
            guard used.total == 0 || used.total + bytes <= limit, ofApp == 0 || ofApp + bytes <= limit / 2 else {
                return false
            }
            used.total += bytes
            used.byApp[app] = ofApp + bytes
            return true
        }
        guard isReserved else {
            Counter(label: "heliograph_events_api_busy_total", dimensions: [("app", app.rawValue)]).increment()
            throw APIError.busy
        }
        defer {
            used.withLock { used in
                used.total -= bytes
                let left = used.byApp[app, default: 0] - bytes
                used.byApp[app] = left > 0 ? left : nil
            }
        }
        return try await body()
    }
}
