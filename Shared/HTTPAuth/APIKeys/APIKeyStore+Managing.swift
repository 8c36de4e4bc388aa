package import FoundationEssentials
package import Postgres
package import PushProtocol

/// Creates, lists and revokes a service's API keys, for `pushctl keys`. The service itself has no right to do so.
extension APIKeyStore {
    /// A key without its secret, which is not stored.
    package struct StoredAPIKey: Hashable, Sendable {
        package var id: String
        package var name: String
        /// `nil`: every app.
        package var app: AppID?
        package var operations: [String]
        package var createdAt: Date
        package var expiresAt: Date?
        package var revokedAt: Date?
        package var lastUsedAt: Date?
    }

    package func add(
        _ key: APIKey, name: String, app: AppID?, operations: [APIKey.Operation], expiresAt: Date?
    ) async throws(PostgresError) {
        try await database.execute(
            """
            INSERT INTO \(identifier: schema).api_key (id, digest, name, app, operations, expires_at)
            VALUES (\(key.id), \(key.digest), \(name), \(app?.rawValue), \(operations.map(\.rawValue)), \(expiresAt))
            """)
    }

    /// All keys, the latest first.
    package func list() async throws(PostgresError) -> [StoredAPIKey] {
        let rows = try await database.query(
            """
            SELECT id, name, app, operations, created_at, expires_at, revoked_at, last_used_at
            FROM \(identifier: schema).api_key ORDER BY created_at DESC, id
            """)
        return try rows.map { row throws(PostgresError) in
            StoredAPIKey(
                id: try row.decode(at: 0), name: try row.decode(at: 1),
                app: try row.decode(String?.self, at: 2).flatMap { AppID(rawValue: $0) },
                operations: try row.decode(at: 3), createdAt: try row.decode(at: 4),
                expiresAt: try row.decode(Date?.self, at: 5), revokedAt: try row.decode(Date?.self, at: 6),
                lastUsedAt: try row.decode(Date?.self, at: 7))
        }
    }

    /// Revokes a key permanently.
    ///
    /// - Returns: whether the key exists.
    package func revoke(_ id: String) async throws(PostgresError) -> Bool {
        try await database.execute(
            """
            UPDATE \(identifier: schema).api_key SET revoked_at = coalesce(revoked_at, statement_timestamp())
            WHERE id = \(id)
            """) > 0
    }
}
