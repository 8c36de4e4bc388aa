import FoundationEssentials
package import Postgres
import PushProtocol

/// A service's API keys, as `pushctl keys` writes them into the table `api_key` of the service's own schema.
package struct APIKeyStore: Sendable {
    private let database: PostgresPool
    private let schema: String

    /// Whose keys these are, as `pushctl keys --service` has it: a service's schema has its name.
    var service: String { schema }

    package init(_ database: PostgresPool, schema: String) {
        self.database = database
        self.schema = schema
    }

    /// What is kept of the key with this id; operations that this build does not know are none.
    package func grant(of id: String) async throws(PostgresError) -> KeyGrant? {
        guard let row = try await database.query(Self.lookup(id, in: schema)).first else { return nil }
        let name = try row.decode(String?.self, at: 1)
        let app = name.flatMap { AppID(rawValue: $0) }
        // A key for an app that cannot be is not one for every app.
        guard app != nil || name == nil else { return nil }
        let operations = try row.decode([String].self, at: 2).compactMap(APIKey.Operation.init(rawValue:))
        return KeyGrant(
            id: id, digest: try row.decode([UInt8].self, at: 0), app: app,
            operations: Set(operations), expiresAt: try row.decode(Date?.self, at: 3),
            revokedAt: try row.decode(Date?.self, at: 4))
    }

    /// Notes that a key was used, at most once a minute: a busy key is not written with every request.
    package func touch(_ id: String) async throws(PostgresError) {
        try await database.execute(
            """
            UPDATE \(identifier: schema).api_key SET last_used_at = statement_timestamp()
            WHERE id = \(id)
                AND (last_used_at IS NULL OR last_used_at < statement_timestamp() - interval '1 minute')
            """)
    }

    /// - Parameter schema: the service's.
    package static func lookup(_ id: String, in schema: String) -> SQL {
        """
        SELECT digest, app, operations, expires_at, revoked_at FROM \(identifier: schema).api_key WHERE id = \(id)
        """
    }
}
