import PushProtocol
import Synchronization

/// The state of one APNs connection: its key and the provider tokens it has seen. Safe from any thread
/// (ProviderFacts.md §A.3, §A.8).
final class APNsConnection: Sendable {
    private let binding = Mutex(ProviderTokenBinding())

    /// The key of the request's provider token. Throws when this connection may not use it.
    func admit(
        _ authorization: String, apps: KnownApps, environment: ProviderEnvironment, now: Timestamp
    ) throws(APNsRejection) -> APNsKey {
        let result = binding.withLock { binding in
            Result { () throws(APNsRejection) in
                try binding.admit(authorization, apps: apps, environment: environment, now: now)
            }
        }
        return try result.get()
    }

    /// Rejects every later request with `ExpiredProviderToken`, as APNs does on a connection that has seen an expired
    /// token.
    func markTokenExpired() { binding.withLock { $0.sawExpiredToken = true } }

    /// The effect of a response on a connection with an error limit.
    enum ErrorLimitAction: Hashable, Sendable {
        case nothing, throttle, relax, end
    }

    /// Counts a response. 410 is no error, `BadDeviceToken` counts as two, and an acceptance resets the count
    /// (ProviderFacts.md §A.3).
    func recordStatus(_ status: Int, reason: String?, limit: Int) -> ErrorLimitAction {
        binding.withLock { binding in
            if status == 200 {
                defer { binding.errors = 0 }
                return binding.errors * 2 >= limit ? .relax : .nothing
            }
            guard (400..<500).contains(status), status != 410 else { return .nothing }
            let before = binding.errors
            binding.errors += reason == APNsReason.badDeviceToken.rawValue ? 2 : 1
            if binding.errors >= limit { return before >= limit ? .nothing : .end }
            return binding.errors * 2 >= limit && before * 2 < limit ? .throttle : .nothing
        }
    }

    /// Whether this is the connection's first accepted push. Returns true once.
    func isFirstSuccess() -> Bool {
        binding.withLock { binding in
            defer { binding.hadSuccess = true }
            return !binding.hadSuccess
        }
    }
}

struct ProviderTokenBinding: Sendable {
    /// The minimum interval between two provider tokens, in seconds.
    static let updateInterval: Int64 = 20 * 60

    var sawExpiredToken = false
    var hadSuccess = false
    /// Errors since the last acceptance.
    var errors = 0
    /// The tokens in use, newest first. The previous one stays valid for requests in flight.
    private var accepted: [(authorization: String, token: ProviderToken)] = []
    /// The number of key revocations when the tokens were verified.
    private var revocations = 0

    mutating func admit(
        _ authorization: String, apps: KnownApps, environment: ProviderEnvironment, now: Timestamp
    ) throws(APNsRejection) -> APNsKey {
        if apps.revocations != revocations { (accepted, revocations) = ([], apps.revocations) }
        if sawExpiredToken {
            throw APNsRejection(.expiredProviderToken, "the connection saw an expired token; open a new one")
        }
        let known = accepted.first { $0.authorization == authorization }?.token
        let token = if let known { known } else { try verified(authorization, apps, environment) }
        do throws(APNsRejection) {
            try token.checkAge(at: now)
        } catch {
            sawExpiredToken = error.reason == .expiredProviderToken
            throw error
        }
        if known == nil {
            if let current = accepted.first?.token { try check(token, after: current) }
            accepted = [(authorization, token)] + accepted.prefix(1)
        }
        return token.key
    }

    private func verified(
        _ authorization: String, _ apps: KnownApps, _ environment: ProviderEnvironment
    ) throws(APNsRejection) -> ProviderToken {
        // Apple documents `bearer` in lower case. Any case is accepted, because strictness is unconfirmed.
        guard authorization.prefix(7).lowercased() == "bearer " else {
            throw APNsRejection(.invalidProviderToken, "the authorization header is not “bearer <token>”")
        }
        let token = try ProviderToken(authorization.dropFirst(7), apps: apps)
        guard token.key.environments.contains(environment) else {
            throw APNsRejection(.badEnvironmentKeyIDInToken, "the key is not for \(environment.rawValue)")
        }
        return token
    }

    /// Compares the tokens' own `iat`: senders refresh by token age, and the connection may be younger than the token.
    private func check(_ token: ProviderToken, after current: ProviderToken) throws(APNsRejection) {
        guard token.key.teamID == current.key.teamID else {
            throw APNsRejection(.invalidProviderToken, "the connection is bound to another team")
        }
        guard token.key.keyID == current.key.keyID else {
            throw APNsRejection(.unrelatedKeyIDInToken, "the connection is bound to another key")
        }
        guard token.issuedAt >= current.issuedAt + Self.updateInterval else {
            throw APNsRejection(.tooManyProviderTokenUpdates, "a second provider token within 20 minutes")
        }
    }
}
