import PushProtocol
import Synchronization

/// What APNs remembers about one connection: the key it is bound to and the provider tokens it has seen
/// (push-protocols A.3, A.8). Safe from any thread.
final class APNsConnection: Sendable {
    private let binding = Mutex(ProviderTokenBinding())

    /// The key of the request's provider token, if it may be used on this connection.
    ///
    /// - Parameter authorization: the header's value.
    func admit(
        _ authorization: String, apps: KnownApps, environment: ProviderEnvironment, now: Timestamp
    ) throws(APNsRefusal) -> APNsKey {
        let result = binding.withLock { binding in
            Result { () throws(APNsRefusal) in
                try binding.admit(authorization, apps: apps, environment: environment, now: now)
            }
        }
        return try result.get()
    }

    /// From now on every request is refused with `ExpiredProviderToken`, whatever token it carries: that is what a
    /// connection was seen to do after its token had expired.
    func wedge() { binding.withLock { $0.isWedged = true } }

    /// What an answer means for a connection whose errors are limited.
    enum Patience: Hashable, Sendable {
        case nothing, throttle, relax, end
    }

    /// Takes note of an answer. 410 is no error, a `BadDeviceToken` is two, and an acceptance wipes the slate (A.3).
    func score(_ status: Int, reason: String?, limit: Int) -> Patience {
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

    /// True once: when it is first asked after a push was accepted.
    func isFirstSuccess() -> Bool {
        binding.withLock { binding in
            defer { binding.hadSuccess = true }
            return !binding.hadSuccess
        }
    }
}

/// The rules that hold between the provider tokens of one connection.
struct ProviderTokenBinding: Sendable {
    /// The least that must lie between two tokens, in seconds.
    static let updateInterval: Int64 = 20 * 60

    var isWedged = false
    var hadSuccess = false
    /// Since the last acceptance.
    var errors = 0
    /// The tokens in use, newest first: the one before is still good, since requests in flight carry it.
    private var accepted: [(authorization: String, token: ProviderToken)] = []
    /// How many keys had been revoked when the tokens were verified.
    private var revocations = 0

    mutating func admit(
        _ authorization: String, apps: KnownApps, environment: ProviderEnvironment, now: Timestamp
    ) throws(APNsRefusal) -> APNsKey {
        if apps.revocations != revocations { (accepted, revocations) = ([], apps.revocations) }
        if isWedged { throw APNsRefusal(.expiredProviderToken, "the connection saw an expired token; open a new one") }
        let known = accepted.first { $0.authorization == authorization }?.token
        let token = if let known { known } else { try verified(authorization, apps, environment) }
        do throws(APNsRefusal) {
            try token.checkAge(at: now)
        } catch {
            isWedged = error.reason == .expiredProviderToken
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
    ) throws(APNsRefusal) -> ProviderToken {
        // Apple writes `bearer` in lower case; whether it insists is unconfirmed (F), so any case does.
        guard authorization.prefix(7).lowercased() == "bearer " else {
            throw APNsRefusal(.invalidProviderToken, "the authorization header is not “bearer <token>”")
        }
        let token = try ProviderToken(authorization.dropFirst(7), apps: apps)
        guard token.key.environments.contains(environment) else {
            throw APNsRefusal(.badEnvironmentKeyIDInToken, "the key is not for \(environment.rawValue)")
        }
        return token
    }

    /// The interval is measured between the tokens' own `iat`: a sender refreshes by its token's age, and a connection
    /// younger than its token must not punish that.
    private func check(_ token: ProviderToken, after current: ProviderToken) throws(APNsRefusal) {
        guard token.key.teamID == current.key.teamID else {
            throw APNsRefusal(.invalidProviderToken, "the connection is bound to another team")
        }
        guard token.key.keyID == current.key.keyID else {
            throw APNsRefusal(.unrelatedKeyIDInToken, "the connection is bound to another key")
        }
        guard token.issuedAt >= current.issuedAt + Self.updateInterval else {
            throw APNsRefusal(.tooManyProviderTokenUpdates, "a second provider token within 20 minutes")
        }
    }
}
