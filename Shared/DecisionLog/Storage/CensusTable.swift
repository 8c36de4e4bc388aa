import FoundationEssentials
package import Postgres
package import PushProtocol

/// Reads the census, which the rules service counts every few seconds.
package struct CensusTable: Sendable {
    private let database: PostgresPool

    package init(_ database: PostgresPool) { self.database = database }

    /// Returns the census of an app; `nil` means all apps.
    package func read(app: AppID?) async throws(PostgresError) -> Census {
        let ofApp: SQL = app.map { "WHERE app = \($0.rawValue)" } ?? ""
        let at = try await database.query("SELECT clock_timestamp()").single(Date.self)
        let counted = try await database.query("SELECT counted_at FROM rules.census_lease").first
        let rows = try await database.query(
            """
            SELECT app, state, sum(number)::bigint, min(oldest_at) FROM rules.census_count \(ofApp) GROUP BY app, state
            """
        ).map { row throws(PostgresError) in
            Census.Row(
                app: try row.decode(at: 0), state: try row.decode(at: 1), number: try row.decode(at: 2),
                oldestAt: try row.decode(at: 3))
        }
        let gaps = try await database.query(
            """
            SELECT DISTINCT ON (app, state) app, state, count(*) OVER (PARTITION BY app, state), notification, event,
                decided_at
            FROM rules.census_gap \(ofApp) ORDER BY app, state, decided_at
            """
        ).map { row throws(PostgresError) in
            Census.Gap(
                app: try row.decode(at: 0), state: try row.decode(at: 1), number: try row.decode(at: 2),
                notification: try row.decode(at: 3), event: try row.decode(at: 4), decidedAt: try row.decode(at: 5))
        }
        return Census(at: at, countedAt: try counted?.decode(Date?.self, at: 0) ?? nil, rows: rows, gaps: gaps)
    }
}
