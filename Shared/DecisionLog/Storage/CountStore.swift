package import Postgres
package import PushProtocol
import FoundationEssentials

/// Reads the counts of each rule, which the rules service updates every ten minutes from the decision log.
package struct CountStore: Sendable {
    /// The maximum rows of a result: those with the highest `sent`.
    package static let maximumRows = 1000

    private let database: PostgresPool

    package init(_ database: PostgresPool) { self.database = database }

    /// Returns the sums of a window; `nil` for the app means all apps.
    package func counts(of app: AppID?, in window: CountWindow) async throws(PostgresError) -> RuleCounts {
        let (start, end) = (window.start.date, window.end.date)
        let ofApp: SQL = app.map { "AND app = \($0.rawValue)" } ?? ""
        let rows = try await database.query(
            """
            SELECT * FROM (
                SELECT app, rule, rule_set, sum(sent)::bigint AS sent, sum(unsent)::bigint, sum(accepted)::bigint,
                    sum(failed)::bigint, sum(opened)::bigint, sum(dismissed)::bigint
                FROM rules.tally WHERE hour >= \(start) AND hour < \(end) \(ofApp) GROUP BY app, rule, rule_set
                ORDER BY sent DESC, app, rule, rule_set LIMIT \(Self.maximumRows)
            ) AS most ORDER BY app, rule, sent DESC, rule_set
            """)
        let counted = try await database.query(
            "SELECT max(counted_at) FROM rules.tally_hour WHERE hour >= \(start) AND hour < \(end)")
        let counts = try rows.map { row throws(PostgresError) in
            RuleCounts.Row(
                app: try row.decode(at: 0), rule: try row.decode(at: 1), ruleSet: try row.decode(at: 2),
                figures: RuleCounts.Figures(
                    sent: try row.decode(at: 3), unsent: try row.decode(at: 4), accepted: try row.decode(at: 5),
                    failed: try row.decode(at: 6), opened: try row.decode(at: 7), dismissed: try row.decode(at: 8)))
        }
        return RuleCounts(from: start, until: end, countedAt: try counted.single(Date?.self), rows: counts)
    }
}
