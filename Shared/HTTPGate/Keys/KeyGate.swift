import Crypto
package import FoundationEssentials
import HTTPTypes
package import Logging
import Metrics
package import PushProtocol
import ServiceKit

/// Who calls an operator API: a key made by `pushctl keys`, or the one in the configuration, which may do everything.
package struct KeyGate: Sendable {
    private let store: APIKeyStore
    /// The digest of the configuration's key; `nil`: there is none.
    private let master: SHA256.Digest?
    private let limit: RateGate<String>
    /// How many lookups of keys that were not accepted lately may be made, of all callers together.
    private let unknown: RateGate<Bool>
    private let accepted: RecentDigests
    private let refused: RecentDigests
    private let now: @Sendable () -> Date
    private let logger: Logger

    /// The most lookups a minute of keys that were not accepted lately.
    package static let usualUnknownKeys = 600
    /// How long a key that is not known is refused without a lookup.
    package static let refusalLifetime = Duration.seconds(30)

    /// - Parameters:
    ///   - master: the configuration's key; `nil`: there is none.
    ///   - unknownKeys: the most lookups a minute of keys that were not accepted lately, of all callers together.
    package init(
        _ store: APIKeyStore, master: String?, limit: RateGate<String>, unknownKeys: Int = usualUnknownKeys,
        uptime: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        now: @escaping @Sendable () -> Date = { Date() }, logger: Logger
    ) {
        self.store = store
        self.master = master.map { SHA256.hash(data: Array($0.utf8)) }
        self.limit = limit
        unknown = RateGate("unknown-key", perMinute: unknownKeys, uptime: uptime)
        accepted = RecentDigests(lifetime: .seconds(600), uptime: uptime)
        refused = RecentDigests(lifetime: Self.refusalLifetime, uptime: uptime)
        self.now = now
        self.logger = logger
    }

    /// Whom a request's key stands for.
    package enum Caller: Sendable {
        /// The configuration's.
        case master
        case key(KeyGrant)
    }

    /// The caller that a key, as it stands after `Bearer`, is of; unless it is not for `operation` at all, or asks too
    /// often.
    package func caller(_ text: String?, to operation: APIKey.Operation) async throws -> Caller {
        do {
            guard let text else { throw KeyGrant.Refusal.missing }
            // Digests are compared in constant time, and tell nothing of the key's length.
            if let master, SHA256.hash(data: Array(text.utf8)) == master { return .master }
            guard let key = APIKey(text) else { throw KeyGrant.Refusal.unknown }
            let grant = try await grant(of: key)
            try limit.admit(key.id)
            try grant.check(operation)
            try await store.touch(key.id)
            return .key(grant)
        } catch let refusal as KeyGrant.Refusal {
            note(refusal, key: text.flatMap { APIKey($0)?.id })
            throw refusal.answer(operation, of: store.service)
        }
    }

    /// Looks a key up. Keys that are not known cost the database no more than a few lookups a second, whoever sends them.
    private func grant(of key: APIKey) async throws -> KeyGrant {
        let digest = RecentDigests.digest(key.secret)
        guard !refused.contains(digest) else { throw KeyGrant.Refusal.unknown }
        if !accepted.contains(digest) { try unknown.admit(true) }
        do {
            guard let grant = try await store.grant(of: key.id) else { throw KeyGrant.Refusal.unknown }
            try grant.check(key, now: now())
            accepted.insert(digest)
            return grant
        } catch let refusal as KeyGrant.Refusal {
            refused.insert(digest)
            throw refusal
        }
    }

    /// Lets a caller through whose key is for that app; `nil`: for every app.
    package func admit(_ caller: Caller, to operation: APIKey.Operation, of app: AppID?) throws(APIRefusal) {
        switch caller {
        case .master: return
        case .key(let grant):
            do throws(KeyGrant.Refusal) { try grant.check(app) } catch {
                note(error, key: grant.id)
                throw error.answer(operation, of: store.service)
            }
        }
    }

    /// | name | kind | labels | counts |
    /// |---|---|---|---|
    /// | `heliograph_http_keys_refused_total` | counter | reason | requests that were turned away for their API key |
    private func note(_ refusal: KeyGrant.Refusal, key: String?) {
        Counter(label: "heliograph_http_keys_refused_total", dimensions: [("reason", refusal.rawValue)]).increment()
        // Anyone can cause these, in any number.
        logger.debug(
            "An API key was turned away", metadata: [LogKey.reason: "\(refusal.rawValue)", "key": "\(key ?? "none")"])
    }
}

extension KeyGrant.Refusal {
    /// What the caller hears. Whether a key was never there, is revoked or has expired is the operator's to know.
    ///
    /// - Parameter service: as `pushctl keys` knows it.
    fileprivate func answer(_ operation: APIKey.Operation, of service: String) -> APIRefusal {
        let make = "pushctl keys create --service \(service)"
        let list = "pushctl keys list --service \(service)"
        return switch self {
        case .missing:
            APIRefusal(
                status: .unauthorized,
                message: "send an API key: Authorization: Bearer hgk_…; \(make) makes one",
                challenge: "Bearer")
        case .unknown, .wrong, .revoked, .expired:
            APIRefusal(
                status: .unauthorized,
                message: "the API key is not accepted; \(list) shows those that are",
                challenge: #"Bearer error="invalid_token""#)
        case .wrongApp:
            APIRefusal(
                status: .forbidden, message: "the API key is for another app; \(list) shows for which",
                challenge: #"Bearer error="insufficient_scope""#)
        case .wrongOperation:
            APIRefusal(
                status: .forbidden,
                message: "the API key is not for \(operation.rawValue); \(list) shows what it is for",
                challenge: #"Bearer error="insufficient_scope", scope="\#(operation.rawValue)""#)
        }
    }
}
