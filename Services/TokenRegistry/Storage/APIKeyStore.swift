import FoundationEssentials
import Postgres
import PushProtocol

/// The API keys, as `pushctl keys` writes them.
struct APIKeyStore: Sendable {
    private let database: PostgresPool

    init(_ database: PostgresPool) { self.database = database }

    /// What is kept of the key with this id; operations that this build does not know are none.
    func grant(of id: String) async throws(PostgresError) -> KeyGrant? {
        guard let row = try await database.query(Self.lookup(id)).first else { return nil }
        let operations = try row.decode([String].self, at: 2).compactMap(APIKey.Operation.init(rawValue:))
        return KeyGrant(
            id: id, digest: try row.decode([UInt8].self, at: 0), app: try row.decode(AppID?.self, at: 1),
            operations: Set(operations), expiresAt: try row.decode(Date?.self, at: 3),
            revokedAt: try row.decode(Date?.self, at: 4))
    }

    /// Notes that a key was used, at most once a minute: a busy key is not written with every request.
    func touch(_ id: String) async throws(PostgresError) {
        try await database.execute(
            """
            UPDATE registry.api_key SET last_used_at = statement_timestamp()
            WHERE id = \(id)
                AND (last_used_at IS NULL OR last_used_at < statement_timestamp() - interval '1 minute')
            """)
    }

    static func lookup(_ id: String) -> SQL {
        "SELECT digest, app, operations, expires_at, revoked_at FROM registry.api_key WHERE id = \(id)"
    }
}
