package import Logging
import Metrics
import PushProtocol
import ServiceKit
import Synchronization

/// Authenticates users or publishers by their bearer tokens. Counts and logs the reasons of rejections; clients only get an
/// instruction.
package final class BearerAuthenticator: Sendable {
    /// The least time between two log lines with the same reason.
    package static let quiet = Duration.seconds(60)

    private let verifier: BearerVerifier
    private let limit: RateLimiter<Caller>
    /// Limits rejected tokens, for all callers together.
    private let refusals: RateLimiter<Bool>
    private let accepted: RecentDigests
    private let uptime: @Sendable () -> ContinuousClock.Instant
    private let logger: Logger
    private let logged = Mutex<[BearerTokenError: ContinuousClock.Instant]>([:])

    /// The maximum number of rejected tokens a minute. Above it, only recently accepted tokens are verified. Verifying
    /// 1000 tokens a second takes about a tenth of a core.
    package static let defaultRefusalsPerMinute = 60_000

    package init(
        _ verifier: BearerVerifier, limit: RateLimiter<Caller> = RateLimiter("user", perMinute: 0),
        refusals: Int = defaultRefusalsPerMinute,
        uptime: @escaping @Sendable () -> ContinuousClock.Instant = { .now }, logger: Logger
    ) {
        self.verifier = verifier
        self.limit = limit
        self.refusals = RateLimiter("refused-bearer", perMinute: refusals, uptime: uptime)
        accepted = RecentDigests(lifetime: .seconds(600), uptime: uptime)
        self.uptime = uptime
        self.logger = logger
    }

    /// Returns the token's holder.
    ///
    /// - Parameter token: the text after `Bearer`; nil without an `Authorization` header.
    /// - Throws: an error for the response; 429 when the holder exceeds the rate limit.
    package func authenticate(_ token: String?) async throws(APIError) -> Caller {
        try await verified(token).caller
    }

    /// Returns the token's holder and claims, as ``authenticate(_:)`` does.
    package func verified(_ token: String?) async throws(APIError) -> VerifiedToken {
        let digest = RecentDigests.digest(token ?? "")
        if !accepted.contains(digest) { try refusals.check(true) }
        let verified: VerifiedToken
        do throws(APIError) {
            verified = try await verify(token)
        } catch {
            if token != nil { refusals.spend(of: true) }
            throw error
        }
        accepted.insert(digest)
        try limit.admit(verified.caller)
        return verified
    }

    private func verify(_ token: String?) async throws(APIError) -> VerifiedToken {
        do throws(BearerTokenError) {
            guard let token else { throw BearerTokenError(.missing) }
            return try await verifier.verified(token)
        } catch {
            note(error)
            throw error.answer
        }
    }

    private func note(_ refusal: BearerTokenError) {
        Counter(
            label: "heliograph_http_bearer_refused_total", dimensions: [("reason", refusal.reason.rawValue)]
        ).increment()
        let now = uptime()
        let isDue = logged.withLock { logged in
            if let last = logged[refusal], now - last < Self.quiet { return false }
            logged[refusal] = now
            return true
        }
        // Any client can cause these, in any number.
        guard isDue else { return }
        logger.notice(
            "Bearer token rejected; further ones with this reason are only counted for a minute",
            metadata: [
                "app": "\(refusal.app.map(\.rawValue) ?? "unknown")", LogKey.reason: "\(refusal.reason.rawValue)",
                "detail": "\(refusal.reason.explanation)",
            ])
    }
}
