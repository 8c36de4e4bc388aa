package import Postgres
import PushProtocol

/// The properties of the database server that `pushctl doctor` reports.
package struct DatabaseInspection: Hashable, Sendable {
    /// `server_version_num`, such as 150008 for 15.8.
    package var serverVersion: Int
    /// The client connections now, of all databases.
    package var connections: Int
    /// The connections that are not reserved for superusers.
    package var maximumConnections: Int
    /// The settings that can lose a committed row, one sentence each (``DatabaseDurability``).
    package var durabilityRisks: [String]
    /// The database's time minus this machine's.
    package var clockDifference: Duration

    package static func read(_ pool: PostgresPool) async throws -> DatabaseInspection {
        let time = try await DatabaseClock(pool).now()
        let difference = time - Timestamp.now
        guard
            let row = try await pool.query(
                """
                SELECT current_setting('server_version_num')::integer,
                    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
                    current_setting('max_connections')::integer
                        - current_setting('superuser_reserved_connections')::integer
                """
            ).first
        else { throw PostgresError(.decoding, operation: "read the settings", detail: "expected one row, found none") }
        return DatabaseInspection(
            serverVersion: Int(try row.decode(Int32.self, at: 0)), connections: Int(try row.decode(Int64.self, at: 1)),
            maximumConnections: Int(try row.decode(Int32.self, at: 2)),
            durabilityRisks: try await DatabaseDurability.read(pool).risks, clockDifference: difference)
    }

    /// The rights of a service's group role, which the migrations create.
    package struct RoleRights: Hashable, Sendable {
        package var exists: Bool
        /// Whether it may use the schema and read the table of its migrations.
        package var mayUseSchema: Bool
        /// Whether a role that can log in is a member.
        package var hasLogin: Bool
    }

    /// - Parameters:
    ///   - role: a group role, such as `heliograph_rules`.
    ///   - schema: a schema that exists, with its table `migration`.
    package static func rights(
        of role: String, in schema: String, _ pool: PostgresPool
    ) async throws(PostgresError) -> RoleRights {
        let exists: Bool = try await pool.query("SELECT to_regrole(\(role)) IS NOT NULL").single()
        guard exists else { return RoleRights(exists: false, mayUseSchema: false, hasLogin: false) }
        guard
            let row = try await pool.query(
                """
                SELECT has_schema_privilege(\(role)::name, \(schema)::text, 'USAGE')
                        AND has_table_privilege(\(role)::name, \(schema)::text || '.migration', 'SELECT'),
                    EXISTS (
                        SELECT FROM pg_auth_members JOIN pg_roles ON pg_roles.oid = member
                        WHERE roleid = to_regrole(\(role)) AND rolcanlogin)
                """
            ).first
        else { throw PostgresError(.decoding, operation: "read the rights", detail: "expected one row, found none") }
        return RoleRights(
            exists: true, mayUseSchema: try row.decode(at: 0), hasLogin: try row.decode(at: 1))
    }
}
