package import Postgres
import FoundationEssentials
import PushProtocol

/// Reads a service's API keys from the table `api_key` of its schema.
package struct APIKeyStore: Sendable {
    let database: PostgresPool
    let schema: String

    /// The service's name for `pushctl keys --service`, which equals its schema's name.
    var service: String { schema }

    package init(_ database: PostgresPool, schema: String) {
        self.database = database
        self.schema = schema
    }

    /// Returns the record of a key id. Ignores operations that this build does not know.
    package func record(of id: String) async throws(PostgresError) -> APIKeyRecord? {
        guard let row = try await database.query(Self.lookup(id, in: schema)).first else { return nil }
        let name = try row.decode(String?.self, at: 1)
        let app = name.flatMap { AppID(rawValue: $0) }
        // A record with an invalid app id must not become a key for all apps.
        guard app != nil || name == nil else { return nil }
        let operations = try row.decode([String].self, at: 2).compactMap(APIKey.Operation.init(rawValue:))
        return APIKeyRecord(
            id: id, digest: try row.decode([UInt8].self, at: 0), app: app,
            operations: Set(operations), expiresAt: try row.decode(Date?.self, at: 3),
            revokedAt: try row.decode(Date?.self, at: 4))
    }

    /// Updates `last_used_at`, at most once a minute.
    package func recordUse(_ id: String) async throws(PostgresError) {
        try await database.execute(
            """
            UPDATE \(identifier: schema).api_key SET last_used_at = statement_timestamp()
            WHERE id = \(id)
                AND (last_used_at IS NULL OR last_used_at < statement_timestamp() - interval '1 minute')
            """)
    }

    /// Returns the query for a key id. `schema` is the service's schema.
    package static func lookup(_ id: String, in schema: String) -> SQL {
        """
        SELECT digest, app, operations, expires_at, revoked_at FROM \(identifier: schema).api_key WHERE id = \(id)
        """
    }
}
