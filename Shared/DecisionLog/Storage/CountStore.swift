import FoundationEssentials
package import Postgres
package import PushProtocol

/// What rules counted, rule by rule. Reads only; rules count every ten minutes, from the log of decisions.
package struct CountStore: Sendable {
    /// The most rows of one answer: those of which most was sent.
    package static let mostRows = 1000

    private let database: PostgresPool

    package init(_ database: PostgresPool) { self.database = database }

    /// Sums the hours of a window.
    ///
    /// - Parameter app: `nil`: every app's.
    package func counts(of app: AppID?, in window: CountWindow) async throws(PostgresError) -> RuleCounts {
        let (start, end) = (window.start.date, window.end.date)
        let ofApp: SQL = app.map { "AND app = \($0.rawValue)" } ?? ""
        let rows = try await database.query(
            """
            SELECT * FROM (
                SELECT app, rule, rule_set, sum(sent)::bigint AS sent, sum(unsent)::bigint, sum(accepted)::bigint,
                    sum(failed)::bigint, sum(opened)::bigint, sum(dismissed)::bigint
                FROM rules.tally WHERE hour >= \(start) AND hour < \(end) \(ofApp) GROUP BY app, rule, rule_set
                ORDER BY sent DESC, app, rule, rule_set LIMIT \(Self.mostRows)
            ) AS most ORDER BY app, rule, sent DESC, rule_set
            """)
        let counted = try await database.query(
            "SELECT max(counted_at) FROM rules.tally_hour WHERE hour >= \(start) AND hour < \(end)")
        var counts = RuleCounts(from: start, until: end, countedAt: try counted.single(Date?.self), rows: [])
        for row in rows {
            counts.rows.append(
                RuleCounts.Row(
                    app: try row.decode(at: 0), rule: try row.decode(at: 1), ruleSet: try row.decode(at: 2),
                    figures: RuleCounts.Figures(
                        sent: try row.decode(at: 3), unsent: try row.decode(at: 4), accepted: try row.decode(at: 5),
                        failed: try row.decode(at: 6), opened: try row.decode(at: 7),
                        dismissed: try row.decode(at: 8))))
        }
        return counts
    }
}
