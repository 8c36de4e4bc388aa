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
    /// How many tokens may be refused, of all callers together.
    private let refusals: RateGate<Bool>
    private let accepted: RecentDigests
    private let uptime: @Sendable () -> ContinuousClock.Instant
    private let logger: Logger
    private let logged = Mutex<[BearerRefusal: ContinuousClock.Instant]>([:])

    /// The most tokens a minute that are verified in vain. Beyond it only tokens are verified that were accepted lately:
    /// verifying 1000 a second takes about a tenth of a core.
    package static let usualRefusals = 60_000

    package init(
        _ verifier: BearerVerifier, limit: RateGate<Caller> = RateGate("user", perMinute: 0),
        refusals: Int = usualRefusals,
        uptime: @escaping @Sendable () -> ContinuousClock.Instant = { .now }, logger: Logger
    ) {
        self.verifier = verifier
        self.limit = limit
        self.refusals = RateGate("refused-bearer", perMinute: refusals, uptime: uptime)
        accepted = RecentDigests(lifetime: .seconds(600), uptime: uptime)
        self.uptime = uptime
        self.logger = logger
    }

    /// The caller that a token, as it stands after `Bearer`, speaks for; unless they ask too often.
    package func admit(_ token: String?) async throws(APIRefusal) -> Caller {
        let digest = RecentDigests.digest(token ?? "")
        if !accepted.contains(digest) { try refusals.check(true) }
        let caller: Caller
        do throws(APIRefusal) {
            caller = try await self.caller(token)
        } catch {
            if token != nil { refusals.spend(of: true) }
            throw error
        }
        accepted.insert(digest)
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
