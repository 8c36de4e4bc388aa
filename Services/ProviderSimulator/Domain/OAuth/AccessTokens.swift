import PushProtocol
import Synchronization

/// The valid access tokens. Safe from any thread.
final class AccessTokens: Sendable {
    struct Grant: Hashable, Sendable {
        let project: String
        let expiresAt: Timestamp
    }

    private let grants = Mutex<[String: Grant]>([:])

    func issue(project: String, lifetime: Int64, at now: Timestamp) -> String {
        let token = "ya29.sim-" + Base64URL.text(of: (0..<36).map { _ in UInt8.random(in: .min ... .max) })
        grants.withLock { grants in
            grants = grants.filter { $0.value.expiresAt > now }
            grants[token] = Grant(project: project, expiresAt: now + .seconds(lifetime))
        }
        return token
    }

    func grant(for token: String, at now: Timestamp) -> Grant? {
        grants.withLock { $0[token] }.flatMap { $0.expiresAt > now ? $0 : nil }
    }

    /// Revokes every token issued so far.
    func revokeAll() { grants.withLock { $0 = [:] } }
}
