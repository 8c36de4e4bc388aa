package import FoundationEssentials
package import PushProtocol

/// The stored data of an API key, without the key itself.
package struct APIKeyRecord: Hashable, Sendable {
    package var id: String
    /// SHA-256 of the key.
    package var digest: [UInt8]
    /// The app that the key is valid for; `nil` for all apps.
    package var app: AppID?
    package var operations: Set<APIKey.Operation>
    package var expiresAt: Date?
    package var revokedAt: Date?

    /// The reason for which a key was rejected, for the operator's log.
    package enum AccessError: String, Hashable, Sendable, CaseIterable, Error {
        case missing
        case unknown
        case wrong
        case revoked
        case expired
        case wrongApp = "wrong-app"
        case wrongOperation = "wrong-operation"
    }

    /// Checks the key's digest (in constant time), revocation and expiry.
    package func check(_ key: APIKey, now: Date) throws(AccessError) {
        guard key.matches(digest: digest) else { throw .wrong }
        guard revokedAt == nil else { throw .revoked }
        if let expiresAt, expiresAt <= now { throw .expired }
    }

    package func check(_ operation: APIKey.Operation) throws(AccessError) {
        guard operations.contains(operation) else { throw .wrongOperation }
    }

    /// Checks that the key is valid for an app; `nil` for all apps.
    package func check(_ app: AppID?) throws(AccessError) {
        guard self.app == nil || self.app == app else { throw .wrongApp }
    }
}
