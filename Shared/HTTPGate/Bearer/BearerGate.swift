package import Logging
import Metrics
import PushProtocol
import ServiceKit
import Synchronization

/// Lets through whom a bearer token speaks for. Why others are turned away is counted and logged; they hear what to do.
package final class BearerGate: Sendable {
    /// Between two log lines about the same.
    package static let quiet = Duration.seconds(60)

    private let verifier: BearerVerifier
    private let limit: RateGate<Caller>
    private let uptime: @Sendable () -> ContinuousClock.Instant
    private let logger: Logger
    private let logged = Mutex<[BearerRefusal: ContinuousClock.Instant]>([:])

    package init(
        _ verifier: BearerVerifier, limit: RateGate<Caller> = RateGate("user", perMinute: 0),
        uptime: @escaping @Sendable () -> ContinuousClock.Instant = { .now }, logger: Logger
    ) {
        self.verifier = verifier
        self.limit = limit
        self.uptime = uptime
        self.logger = logger
    }

    /// The caller that a token, as it stands after `Bearer`, speaks for; unless they ask too often.
    package func admit(_ token: String?) async throws(APIRefusal) -> Caller {
        let caller = try await caller(token)
        try limit.admit(caller)
        return caller
    }

    private func caller(_ token: String?) async throws(APIRefusal) -> Caller {
        do throws(BearerRefusal) {
            guard let token else { throw BearerRefusal(.missing) }
            return try await verifier.verify(token)
        } catch {
            note(error)
            throw error.answer
        }
    }

    /// | name | kind | labels | counts |
    /// |---|---|---|---|
    /// | `heliograph_http_bearer_refused_total` | counter | reason | requests that were turned away for their bearer token |
    private func note(_ refusal: BearerRefusal) {
        Counter(
            label: "heliograph_http_bearer_refused_total", dimensions: [("reason", refusal.reason.rawValue)]
        ).increment()
        let now = uptime()
        let isNews = logged.withLock { logged in
            if let last = logged[refusal], now - last < Self.quiet { return false }
            logged[refusal] = now
            return true
        }
        // Anyone can cause these, in any number.
        guard isNews else { return }
        logger.notice(
            "A bearer was turned away; for a minute, more of the same are only counted",
            metadata: [
                "app": "\(refusal.app.map(\.rawValue) ?? "unknown")", LogKey.reason: "\(refusal.reason.rawValue)",
                "detail": "\(refusal.reason.explanation)",
            ])
    }
}
