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
                SELECT decision.rule, decision.user_id, decision.notification, decision.decided_at
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
                        WHERE receipt.notification = reached.notification AND what = 'dismissed')) AS dismissed,
                    bool_or(EXISTS (
                        SELECT FROM rules.decision AS later
                            JOIN rules.event AS cause ON cause.key = later.event
                            JOIN rules.outcome ON outcome.notification = later.notification
                        WHERE later.user_id = reached.user_id AND cause.app = \(app.rawValue)
                            AND later.decided_at >= reached.decided_at
                            AND outcome.at < reached.decided_at + make_interval(secs => \(Self.uninstallSeconds))
                            AND disposition = 'unregistered')) AS uninstalled
                FROM reached GROUP BY reached.rule, reached.user_id
            )
            SELECT rule, count(*), count(*) FILTER (WHERE accepted), count(*) FILTER (WHERE opened),
                count(*) FILTER (WHERE dismissed),
                count(*) FILTER (WHERE settings -> 'enabled' = 'false' OR choice = 'false' OR choice @> '{"push": false}'),
                count(*) FILTER (WHERE uninstalled)
            FROM notified
            LEFT JOIN rules.person ON person.app = \(app.rawValue) AND person.user_id = notified.user_id
            CROSS JOIN LATERAL (SELECT settings -> 'types' -> \(type ?? "") AS choice) AS chosen
            GROUP BY rule
            """)
        var figures: [String: VariantReport.Figures] = [:]
        for row in rows {
            figures[try row.decode(at: 0)] = VariantReport.Figures(
                users: try row.decode(at: 1), accepted: try row.decode(at: 2), opened: try row.decode(at: 3),
                dismissed: try row.decode(at: 4), switchedOff: try row.decode(at: 5), uninstalled: try row.decode(at: 6)
            )
        }
        return figures
    }

    /// Compares the variants of a rule by the decisions from `from` until before `until`.
    package func report(
        of rule: ComparedRule, app: AppID, from: Date, until: Date, measure: VariantReport.Measure = .opened
    ) async throws(PostgresError) -> VariantReport {
        let figures = try await figures(
            of: rule.variants.map(\.rule), app: app, type: rule.type, from: from, until: until)
        let stops = try await stops()[app] ?? [:]
        return VariantReport(
            app: app.rawValue, rule: rule.name, from: from, until: until, measure: measure,
            rows: rule.variants.map {
                VariantReport.Row(
                    $0, figures[$0.rule] ?? VariantReport.Figures(), stoppedAt: stops[$0.rule]?.date)
            })
    }

    private static let uninstallSeconds = Double(VariantReport.Figures.uninstallTime.components.seconds)

    /// Returns the stopped variants of all apps: by app and the name of the variant's rule, the time from which its users
    /// get the first variant.
    package func stops() async throws(PostgresError) -> [AppID: [String: Timestamp]] {
        var stops: [AppID: [String: Timestamp]] = [:]
        for row in try await database.query("SELECT app, rule, stopped_at FROM rules.stopped_variant") {
            guard let app = AppID(rawValue: try row.decode(at: 0)) else { continue }
            stops[app, default: [:]][try row.decode(at: 1)] = Timestamp(try row.decode(Date.self, at: 2))
        }
        return stops
    }

    /// Stops a variant from a time on, unless it is stopped.
    ///
    /// - Returns: whether this call stopped it.
    package func stop(
        _ variant: VariantReport.Variant, of app: AppID, because harm: VariantReport.Harm, at time: Timestamp
    ) async throws(PostgresError) -> Bool {
        try await database.execute(
            """
            INSERT INTO rules.stopped_variant (app, rule, stopped_at, harm)
            VALUES (\(app.rawValue), \(variant.rule), \(time.date), \(harm.rawValue)) ON CONFLICT (app, rule) DO NOTHING
            """) == 1
    }
}
