package import FoundationEssentials
package import Logging
package import PushProtocol
import Crypto
import HTTPTypes
import Metrics
import ServiceKit

/// Authenticates callers of an operator API by keys of `pushctl keys`, or by the configured master key, which may do
/// everything.
package struct APIKeyAuthenticator: Sendable {
    private let store: APIKeyStore
    /// The digest of the configured master key, if any.
    private let master: SHA256.Digest?
    private let limit: RateLimiter<String>
    /// Limits look-ups of keys that were not accepted recently, for all callers together.
    private let unknown: RateLimiter<Bool>
    private let accepted: RecentDigests
    private let refused: RecentDigests
    private let now: @Sendable () -> Date
    private let logger: Logger

    /// The maximum number of look-ups a minute of keys that were not accepted recently.
    package static let defaultUnknownKeysPerMinute = 600
    /// The time for which a rejected key is rejected without a look-up.
    package static let refusalLifetime = Duration.seconds(30)

    /// - Parameter unknownKeys: the maximum look-ups a minute of keys that were not accepted recently, for all callers
    ///   together.
    package init(
        _ store: APIKeyStore, master: String?, limit: RateLimiter<String>,
        unknownKeys: Int = defaultUnknownKeysPerMinute,
        uptime: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        now: @escaping @Sendable () -> Date = { Date() }, logger: Logger
    ) {
        self.store = store
        self.master = master.map { SHA256.hash(data: Array($0.utf8)) }
        self.limit = limit
        unknown = RateLimiter("unknown-key", perMinute: unknownKeys, uptime: uptime)
        accepted = RecentDigests(lifetime: .seconds(600), uptime: uptime)
        refused = RecentDigests(lifetime: Self.refusalLifetime, uptime: uptime)
        self.now = now
        self.logger = logger
    }

    package enum Principal: Sendable {
        /// The configured master key.
        case master
        case key(APIKeyRecord)
    }

    /// Authenticates a key and checks its operation and rate limit.
    ///
    /// - Parameter text: the text after `Bearer`; nil without an `Authorization` header.
    package func caller(_ text: String?, to operation: APIKey.Operation) async throws -> Principal {
        do {
            guard let text else { throw APIKeyRecord.AccessError.missing }
            // Comparing digests takes constant time and does not reveal the key's length.
            if let master, SHA256.hash(data: Array(text.utf8)) == master { return .master }
            guard let key = APIKey(text) else { throw APIKeyRecord.AccessError.unknown }
            let record = try await record(of: key)
            try limit.admit(key.id)
            try record.check(operation)
            try await store.recordUse(key.id)
            return .key(record)
        } catch let refusal as APIKeyRecord.AccessError {
            note(refusal, key: text.flatMap { APIKey($0)?.id })
            throw refusal.answer(operation, of: store.service)
        }
    }

    /// Looks up and checks a key. The rate of look-ups of unknown keys is limited to protect the database.
    private func record(of key: APIKey) async throws -> APIKeyRecord {
        let digest = RecentDigests.digest(key.secret)
        guard !refused.contains(digest) else { throw APIKeyRecord.AccessError.unknown }
        if !accepted.contains(digest) { try unknown.admit(true) }
        do {
            guard let record = try await store.record(of: key.id) else { throw APIKeyRecord.AccessError.unknown }
            try record.check(key, now: now())
            accepted.insert(digest)
            return record
        } catch let refusal as APIKeyRecord.AccessError {
            refused.insert(digest)
            throw refusal
        }
    }

    /// Checks that a caller's key is valid for an app; `nil` for all apps.
    package func authorize(_ caller: Principal, to operation: APIKey.Operation, of app: AppID?) throws(APIError) {
        switch caller {
        case .master: return
        case .key(let record):
            do throws(APIKeyRecord.AccessError) { try record.check(app) } catch {
                note(error, key: record.id)
                throw error.answer(operation, of: store.service)
            }
        }
    }

    private func note(_ refusal: APIKeyRecord.AccessError, key: String?) {
        Counter(label: "heliograph_http_keys_refused_total", dimensions: [("reason", refusal.rawValue)]).increment()
        // Any client can cause these, in any number: hence the level debug.
        logger.debug(
            "API key rejected", metadata: [LogKey.reason: "\(refusal.rawValue)", "key_id": "\(key ?? "none")"])
    }
}

extension APIKeyRecord.AccessError {
    /// Returns the response. It does not reveal whether a key is unknown, revoked or expired.
    ///
    /// - Parameter service: the service's name for `pushctl keys --service`.
    fileprivate func answer(_ operation: APIKey.Operation, of service: String) -> APIError {
        let make = "pushctl keys create --service \(service)"
        let list = "pushctl keys list --service \(service)"
        return switch self {
        case .missing:
            APIError(
                status: .unauthorized,
                message: "send an API key: Authorization: Bearer hgk_…; create one with \(make)",
                challenge: "Bearer")
        case .unknown, .wrong, .revoked, .expired:
            APIError(
                status: .unauthorized,
                message: "the API key is not accepted; \(list) shows the valid keys",
                challenge: #"Bearer error="invalid_token""#)
        case .wrongApp:
            APIError(
                status: .forbidden, message: "the API key is for another app; \(list) shows its app",
                challenge: #"Bearer error="insufficient_scope""#)
        case .wrongOperation:
            APIError(
                status: .forbidden,
                message: "the API key does not allow \(operation.rawValue); \(list) shows its operations",
                challenge: #"Bearer error="insufficient_scope", scope="\#(operation.rawValue)""#)
        }
    }
}
