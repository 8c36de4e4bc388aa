package import FoundationEssentials
package import HTTPSFetch
package import Logging
package import ServiceKit
import PushProtocol
import Synchronization

/// Verifies bearer tokens of one holder with the keys of all configured apps. The matching key and the claims decide the
/// app.
package final class BearerVerifier: Sendable {
    /// One app's requirements for the claims.
    private struct ClaimRules: Sendable {
        let app: AppID
        let verification: BearerVerification
    }

    /// A key source and the apps that trust it.
    private struct KeySourceRules: Sendable {
        let keyCache: KeyCache
        var claimRules: [ClaimRules]
    }

    private let holder: TokenHolder
    private let sources = Mutex<[KeySourceRules]>([])
    private let fetch: HTTPSFetch
    private let maximumLifetime: Duration
    private let now: @Sendable () -> Date
    private let uptime: @Sendable () -> ContinuousClock.Instant
    private let logger: Logger

    /// The default of `HELIOGRAPH_BEARER_LIFETIME`.
    package static let defaultMaximumLifetime = Duration.seconds(30 * 86_400)

    /// Reads all keys. An unusable file or an invalid URL stops the start; an unreachable URL does not.
    package init(
        _ catalog: AppCatalog, of holder: TokenHolder = .user,
        fetch: HTTPSFetch = BearerVerifier.fetch(), maximumLifetime: Duration = defaultMaximumLifetime,
        now: @escaping @Sendable () -> Date = { Date() },
        uptime: @escaping @Sendable () -> ContinuousClock.Instant = { .now }, logger: Logger
    ) async throws(ConfigurationError) {
        self.holder = holder
        self.fetch = fetch
        self.maximumLifetime = maximumLifetime
        self.now = now
        self.uptime = uptime
        self.logger = logger
        for app in catalog.apps { try await add(app) }
    }

    /// Reads the keys of an app and verifies its tokens from now on; does nothing for an app that was added. Throws for an
    /// unusable file or an invalid URL, and then adds nothing; an unreachable URL is retried. Calls must not overlap.
    package func add(_ app: AppConfiguration) async throws(ConfigurationError) {
        var sources = sources.withLock { $0 }
        guard !sources.contains(where: { $0.claimRules.contains { $0.app == app.id } }) else { return }
        for verification in holder.verifications(of: app) {
            let rules = ClaimRules(app: app.id, verification: verification)
            let known = sources.firstIndex {
                $0.keyCache.source == verification.keys && $0.keyCache.algorithm == verification.algorithm
            }
            if let known {
                sources[known].claimRules.append(rules)
                continue
            }
            let keyCache = KeyCache(
                verification.algorithm, from: verification.keys, fetch: fetch, uptime: uptime, logger: logger)
            await keyCache.refresh()
            if let lastError = await keyCache.lastError, !verification.keys.isTransient(lastError) {
                throw ConfigurationError("apps.\(app.id).\(holder.member): \(verification.keys.name): \(lastError)")
            }
            sources.append(KeySourceRules(keyCache: keyCache, claimRules: [rules]))
        }
        self.sources.withLock { [sources] in $0 = sources }
    }

    /// Returns the HTTPS client for key sets.
    ///
    /// - Parameter caFile: PEM certificates to trust instead of the system's.
    package static func fetch(caFile: String? = nil) -> HTTPSFetch {
        HTTPSFetch(
            caFile: caFile, connectTimeout: .seconds(2), timeout: .seconds(5), maximumResponseSize: 256 << 10)
    }

    package var keyCaches: [KeyCache] { sources.withLock { $0.map(\.keyCache) } }

    /// Verifies a token and returns its holder. If several apps reject it, throws the most specific reason.
    package func verify(_ text: String) async throws(BearerTokenError) -> Caller { try await verified(text).caller }

    /// Verifies a token and returns its holder and claims.
    package func verified(_ text: String) async throws(BearerTokenError) -> VerifiedToken {
        let token = try SignedToken(text)
        var signers: [KeySourceRules] = []
        var lacking: [KeySourceRules] = []
        for source in sources.withLock({ $0 }) where source.keyCache.algorithm.rawValue == token.algorithm {
            // Both checks use one snapshot: a key added between two reads would be neither tried nor missing.
            let keys = await source.keyCache.keys
            if keys.haveSigned(token) {
                signers.append(source)
            } else if keys.mayLack(token.keyID) {
                lacking.append(source)
            }
        }
        if !signers.isEmpty { return try caller(token, signers) }
        // The key may be new. Sources are refreshed concurrently: the request waits for one time-out at most.
        await withTaskGroup(of: Void.self) { group in
            for source in lacking { group.addTask { await source.keyCache.refresh() } }
        }
        // Checks again even if `refresh` did nothing: a concurrent refresh may have ended since the first check.
        for source in lacking where await source.keyCache.keys.haveSigned(token) { signers.append(source) }
        if !signers.isEmpty { return try caller(token, signers) }
        for source in lacking where await source.keyCache.lastError != nil { throw BearerTokenError(.keysUnavailable) }
        throw BearerTokenError(.untrusted)
    }

    private func caller(
        _ token: SignedToken, _ signers: [KeySourceRules]
    ) throws(BearerTokenError) -> VerifiedToken {
        let claims = try token.claims()
        let now = now()
        var callers: [Caller] = []
        var refusals: [BearerTokenError] = []
        for rules in signers.flatMap(\.claimRules) {
            do throws(BearerTokenError) {
                let caller = try rules.verification.caller(
                    of: rules.app, from: claims, now: now, maximumLifetime: maximumLifetime)
                try holder.check(claims, of: rules.app)
                callers.append(caller)
            } catch {
                refusals.append(error)
            }
        }
        guard let caller = callers.first else {
            throw refusals.max { $0.reason.rank < $1.reason.rank } ?? BearerTokenError(.untrusted)
        }
        // An incomplete configuration must not let a token act for two apps.
        guard callers.allSatisfy({ $0 == caller }) else { throw BearerTokenError(.ambiguousApp) }
        return VerifiedToken(caller: caller, claims: claims)
    }
}

extension [VerificationKey] {
    /// Whether one of the keys with the token's `kid` (or without any) signed the token.
    func haveSigned(_ token: SignedToken) -> Bool {
        contains { (token.keyID == nil || $0.id == nil || $0.id == token.keyID) && $0.hasSigned(token) }
    }

    /// Whether the token's `kid` may be a key added since the last refresh; a token without `kid` may match any.
    fileprivate func mayLack(_ keyID: String?) -> Bool { keyID == nil || !contains { $0.id == keyID } }
}

extension BearerVerification.KeySource {
    /// Whether the error can end without a change of this deployment's configuration.
    fileprivate func isTransient(_ error: any Error) -> Bool {
        switch self {
        case .file: false
        case .url: (error as? FetchError).map { $0.isRetriable || $0.code == .responseTooLarge } ?? true
        }
    }
}
