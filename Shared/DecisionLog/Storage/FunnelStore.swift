package import FoundationEssentials
package import Postgres
package import PushProtocol

/// Counts the steps of notifications in the decision log.
package struct FunnelStore: Sendable {
    private let database: PostgresPool

    /// - Parameter database: for properties of devices, with the rights of the owner of the registry's tables too.
    package init(_ database: PostgresPool) { self.database = database }

    /// Returns the funnel of the decisions from `from` until before `until`. Held and gathered notifications count when
    /// they are decided on.
    ///
    /// - Parameters:
    ///   - property: ``Funnel/Property/type`` is counted by rule (``Funnel/byType(_:)``).
    ///   - zone: the time zone of days, a name of the tz database.
    package func funnel(
        by property: Funnel.Property, of app: AppID, from: Date, until: Date, zone: String
    ) async throws(PostgresError) -> Funnel {
        let decided: SQL = """
            SELECT decision.notification, decision.rule, decision.decided_at, decision.answer LIKE 'push%' AS is_sent
            FROM rules.decision JOIN rules.event ON event.key = decision.event
            WHERE decision.decided_at >= \(from) AND decision.decided_at < \(until) AND event.app = \(app.rawValue)
                AND decision.answer NOT IN ('hold', 'digest')
            """
        let counts: SQL =
            switch property {
            case .rule, .type: Self.steps(of: decided, by: "rule", order: "decided DESC, name")
            case .day:
                Self.steps(of: decided, by: "(decided_at AT TIME ZONE \(zone))::date::text", order: "name")
            case .platform: Self.devices(of: decided, by: "registration.platform")
            case .appVersion: Self.devices(of: decided, by: "registration.app_version")
            }
        let rows = try await database.query(counts).map { row throws(PostgresError) in
            var counts: [Int] = []
            for index in property.steps.indices { counts.append(try row.decode(at: index + 1)) }
            return Funnel.Row(name: try row.decode(at: 0), counts: counts)
        }
        return Funnel(
            app: app.rawValue, from: from, until: until, property: property == .type ? .rule : property, rows: rows)
    }

    private static func steps(of decided: SQL, by name: SQL, order: SQL) -> SQL {
        """
        WITH decided AS (\(decided)), steps AS (
            SELECT \(name) AS name, is_sent,
                is_sent AND EXISTS (
                    SELECT FROM rules.outcome
                    WHERE outcome.notification = decided.notification AND disposition = 'accepted') AS is_accepted,
                is_sent AND EXISTS (
                    SELECT FROM rules.receipt
                    WHERE receipt.notification = decided.notification AND what = 'opened') AS is_opened,
                is_sent AND EXISTS (
                    SELECT FROM rules.receipt
                    WHERE receipt.notification = decided.notification AND what = 'dismissed') AS is_dismissed
            FROM decided
        )
        SELECT name, count(*) AS decided, count(*) FILTER (WHERE is_sent), count(*) FILTER (WHERE is_accepted),
            count(*) FILTER (WHERE is_opened), count(*) FILTER (WHERE is_dismissed)
        FROM steps GROUP BY name ORDER BY \(order)
        """
    }

    private static func devices(of decided: SQL, by name: SQL) -> SQL {
        """
        WITH decided AS (\(decided))
        SELECT coalesce(\(name), 'unknown') AS name, count(*) AS pushes, count(*) FILTER (WHERE disposition = 'accepted'),
            count(*) FILTER (WHERE disposition = 'unregistered'),
            count(*) FILTER (WHERE disposition NOT IN ('accepted', 'unregistered'))
        FROM decided JOIN rules.outcome ON outcome.notification = decided.notification AND outcome.device IS NOT NULL
            LEFT JOIN registry.registration ON registration.device_id = outcome.device
        WHERE is_sent GROUP BY 1 ORDER BY pushes DESC, name
        """
    }
}
