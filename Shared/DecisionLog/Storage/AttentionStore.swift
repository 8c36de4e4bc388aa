package import FoundationEssentials
package import Postgres
package import PushProtocol

/// Counts the notifications of users on each day in the decision log.
package struct AttentionStore: Sendable {
    /// The maximum number of users in a report.
    package static let maximumUsers = 10

    private let database: PostgresPool

    package init(_ database: PostgresPool) { self.database = database }

    /// Returns a report about the decisions from `from` until before `until`.
    ///
    /// - Parameters:
    ///   - rules: the names of the rules whose notifications users notice.
    ///   - zone: the time zone of the days, a name of the tz database.
    ///   - promise: the notifications a day that the app promises at most.
    package func report(
        of rules: [String], app: AppID, from: Date, until: Date, zone: String, promise: Int?
    ) async throws(PostgresError) -> AttentionReport {
        let limit = promise ?? Int.max
        let days: SQL = """
            WITH pushed AS (
                SELECT decision.user_id, decision.rule, (decision.decided_at AT TIME ZONE \(zone))::date AS day
                FROM rules.decision JOIN rules.event ON event.key = decision.event
                WHERE decision.decided_at >= \(from) AND decision.decided_at < \(until)
                    AND event.app = \(app.rawValue) AND decision.rule = ANY(\(rules))
                    AND decision.answer IN ('push', 'push-quietly')
            ), days AS (SELECT user_id, day, count(*) AS pushes FROM pushed GROUP BY user_id, day)
            """
        let sums = try await database.query(
            """
            \(days)
            SELECT coalesce(sum(pushes), 0)::bigint, count(DISTINCT user_id),
                coalesce(percentile_disc(0.5) WITHIN GROUP (ORDER BY pushes), 0),
                coalesce(percentile_disc(0.9) WITHIN GROUP (ORDER BY pushes), 0),
                coalesce(percentile_disc(0.99) WITHIN GROUP (ORDER BY pushes), 0), coalesce(max(pushes), 0),
                count(DISTINCT user_id) FILTER (WHERE pushes > \(limit)), count(*) FILTER (WHERE pushes > \(limit))
            FROM days
            """)
        let byRule = try await database.query(
            """
            \(days)
            SELECT rule, count(*) AS sent, count(DISTINCT user_id), count(*) FILTER (WHERE pushes > \(limit))
            FROM pushed JOIN days USING (user_id, day) GROUP BY rule ORDER BY sent DESC, rule
            """)
        let byUser = try await database.query(
            """
            \(days)
            SELECT user_id, sum(pushes)::bigint AS sent, max(pushes) AS most,
                count(*) FILTER (WHERE pushes > \(limit)) AS over
            FROM days GROUP BY user_id ORDER BY over DESC, most DESC, sent DESC, user_id LIMIT \(Self.maximumUsers)
            """)
        var figures = AttentionReport.Days()
        if let row = sums.first {
            figures = AttentionReport.Days(
                notifications: try row.decode(at: 0), users: try row.decode(at: 1), median: try row.decode(at: 2),
                ninety: try row.decode(at: 3), ninetyNine: try row.decode(at: 4), maximum: try row.decode(at: 5),
                usersOver: try row.decode(at: 6), daysOver: try row.decode(at: 7))
        }
        return AttentionReport(
            app: app.rawValue, from: from, until: until, promise: promise, days: figures,
            rules: try byRule.map { row throws(PostgresError) in
                AttentionReport.Rule(
                    name: try row.decode(at: 0), notifications: try row.decode(at: 1), users: try row.decode(at: 2),
                    over: try row.decode(at: 3))
            },
            users: try byUser.map { row throws(PostgresError) in
                AttentionReport.User(
                    id: try row.decode(at: 0), notifications: try row.decode(at: 1), most: try row.decode(at: 2),
                    daysOver: try row.decode(at: 3))
            })
    }
}
