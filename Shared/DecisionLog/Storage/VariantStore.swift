package import FoundationEssentials
package import Postgres
package import PushProtocol

/// Counts the users of a rule's variants in the decision log.
package struct VariantStore: Sendable {
    private let database: PostgresPool

    package init(_ database: PostgresPool) { self.database = database }

    /// Returns the figures of each variant's rule; a rule without decisions is absent. A user with several notifications
    /// counts once.
    ///
    /// - Parameters:
    ///   - rules: the names of the variants' rules.
    ///   - type: the preference type of the rule, for the users that switched it off.
    package func figures(
        of rules: [String], app: AppID, type: String?, from: Date, until: Date
    ) async throws(PostgresError) -> [String: VariantReport.Figures] {
        let rows = try await database.query(
            """
            WITH reached AS (
                SELECT decision.rule, decision.user_id, decision.notification
                FROM rules.decision JOIN rules.event ON event.key = decision.event
                WHERE decision.decided_at >= \(from) AND decision.decided_at < \(until)
                    AND decision.rule = ANY(\(rules)) AND event.app = \(app.rawValue)
                    AND (decision.answer IN ('push', 'push-quietly') OR decision.reason = 'hold-out')
            ), notified AS (
                SELECT reached.rule, reached.user_id,
                    bool_or(EXISTS (
                        SELECT FROM rules.outcome
                        WHERE outcome.notification = reached.notification AND disposition = 'accepted')) AS accepted,
                    bool_or(EXISTS (
                        SELECT FROM rules.receipt
                        WHERE receipt.notification = reached.notification AND what = 'opened')) AS opened,
                    bool_or(EXISTS (
                        SELECT FROM rules.receipt
                        WHERE receipt.notification = reached.notification AND what = 'dismissed')) AS dismissed
                FROM reached GROUP BY reached.rule, reached.user_id
            )
            SELECT rule, count(*), count(*) FILTER (WHERE accepted), count(*) FILTER (WHERE opened),
                count(*) FILTER (WHERE dismissed),
                count(*) FILTER (WHERE settings -> 'enabled' = 'false' OR choice = 'false' OR choice @> '{"push": false}')
            FROM notified
            LEFT JOIN rules.person ON person.app = \(app.rawValue) AND person.user_id = notified.user_id
            CROSS JOIN LATERAL (SELECT settings -> 'types' -> \(type ?? "") AS choice) AS chosen
            GROUP BY rule
            """)
        var figures: [String: VariantReport.Figures] = [:]
        for row in rows {
            figures[try row.decode(at: 0)] = VariantReport.Figures(
                users: try row.decode(at: 1), accepted: try row.decode(at: 2), opened: try row.decode(at: 3),
                dismissed: try row.decode(at: 4), switchedOff: try row.decode(at: 5))
        }
        return figures
    }
}
