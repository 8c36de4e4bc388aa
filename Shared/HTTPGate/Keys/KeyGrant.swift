package import FoundationEssentials
package import PushProtocol

/// What is kept of an API key: everything but the key.
package struct KeyGrant: Hashable, Sendable {
    package var id: String
    /// SHA-256 of the key.
    package var digest: [UInt8]
    /// `nil`: every app.
    package var app: AppID?
    package var operations: Set<APIKey.Operation>
    package var expiresAt: Date?
    package var revokedAt: Date?

    /// Why a key is not accepted; for the operator's log.
    package enum Refusal: String, Hashable, Sendable, CaseIterable, Error {
        case missing
        case unknown
        case wrong
        case revoked
        case expired
        case wrongApp = "wrong-app"
        case wrongOperation = "wrong-operation"
    }

    /// Whether the key is the one that this is about, and still counts. Digests are compared in constant time.
    package func check(_ key: APIKey, now: Date) throws(Refusal) {
        guard key.isKept(as: digest) else { throw .wrong }
        guard revokedAt == nil else { throw .revoked }
        if let expiresAt, expiresAt <= now { throw .expired }
    }

    package func check(_ operation: APIKey.Operation) throws(Refusal) {
        guard operations.contains(operation) else { throw .wrongOperation }
    }

    /// Whether it is for that app; `nil`: for every app.
    package func check(_ app: AppID?) throws(Refusal) {
        guard self.app == nil || self.app == app else { throw .wrongApp }
    }
}
