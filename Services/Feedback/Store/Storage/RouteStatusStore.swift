package import FoundationEssentials
package import Postgres

/// Reads the state of each route, as the senders report it in their outcomes.
package struct RouteStatusStore: Sendable {
    private let database: PostgresPool

    package init(_ database: PostgresPool) { self.database = database }

    package struct RouteStatus: Hashable, Sendable {
        package var app: String
        package var provider: String
        package var environment: String
        /// The targets that the provider accepted or rejected in the last ten minutes.
        package var answered: Int
        /// When the provider last accepted one; `nil` if it is not known.
        package var acceptedAt: Date?
        /// Since when a sender suspects the route rather than its tokens; `nil` if none does.
        package var suspectedSince: Date?
        /// Since when the route's guard is tripped; `nil` if it is not.
        package var guardTrippedSince: Date?
    }

    /// The routes with an answer in the retained time, or with a guard, in the order of their names.
    package func routes() async throws(PostgresError) -> [RouteStatus] {
        let rows = try await database.query(
            """
            SELECT app, provider, environment, coalesce(sum(answered) FILTER (
                    WHERE minute > statement_timestamp() - interval '10 minutes'), 0)::bigint, max(accepted_at),
                min(storm_since) FILTER (WHERE storm_until > statement_timestamp() - interval '2 minutes'),
                (SELECT tripped_at FROM feedback.guard
                    WHERE (guard.app, guard.provider, guard.environment) = (pulse.app, pulse.provider, pulse.environment))
            FROM feedback.pulse GROUP BY app, provider, environment ORDER BY app, provider, environment
            """)
        return try rows.map { row throws(PostgresError) in
            RouteStatus(
                app: try row.decode(at: 0), provider: try row.decode(at: 1), environment: try row.decode(at: 2),
                answered: Int(try row.decode(Int64.self, at: 3)), acceptedAt: try row.decode(at: 4),
                suspectedSince: try row.decode(at: 5), guardTrippedSince: try row.decode(at: 6))
        }
    }
}
