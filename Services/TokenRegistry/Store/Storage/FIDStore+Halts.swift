package import FoundationEssentials
package import Postgres
package import PushProtocol

/// Lists and ends the halts of FIDs by app version, for operators.
extension FIDStore {
    package struct HaltSummary: Hashable, Sendable {
        package var app: String
        /// Empty for registrations without a version.
        package var version: String
        package var haltedAt: Date
        package var until: Date
        /// The number of users whose FIDs were refused within a day.
        package var suspected: Int
    }

    /// The current halts, the latest first.
    package func currentHalts() async throws(PostgresError) -> [HaltSummary] {
        let rows = try await database.query(
            """
            SELECT app, app_version, halted_at, until, suspected FROM registry.fid_halt
            WHERE until > statement_timestamp() ORDER BY halted_at DESC, app, app_version
            """)
        return try rows.map { row throws(PostgresError) in
            HaltSummary(
                app: try row.decode(at: 0), version: try row.decode(at: 1), haltedAt: try row.decode(at: 2),
                until: try row.decode(at: 3), suspected: Int(try row.decode(Int64.self, at: 4)))
        }
    }

    /// Ends a halt now. Returns whether it existed.
    package func endHalt(of app: AppID, version: String) async throws(PostgresError) -> Bool {
        try await database.execute(
            """
            UPDATE registry.fid_halt SET until = statement_timestamp()
            WHERE app = \(app.rawValue) AND app_version = \(version) AND until > statement_timestamp()
            """) > 0
    }
}
