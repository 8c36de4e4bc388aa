package import FoundationEssentials
package import Postgres
package import PushProtocol

/// Reads and resolves feedback's quarantine.
package struct QuarantineStore: Sendable {
    private let database: PostgresPool

    package init(_ database: PostgresPool) { self.database = database }

    /// A quarantined registration with a summary of its evidence.
    package struct QuarantinedRegistration: Hashable, Sendable {
        package var device: UUID
        package var app: String
        package var provider: String
        package var environment: String
        /// Of the latest evidence: the provider's reason, and why it was quarantined.
        package var reason: String
        package var cause: String
        package var count: Int
        package var first: Date
        package var last: Date
    }

    package struct TrippedGuard: Hashable, Sendable {
        package var route: String
        package var since: Date
        package var until: Date
        package var refused: Int64?
        package var answered: Int64?
    }

    /// The registrations that a command selects.
    package enum RegistrationSelection: Hashable, Sendable {
        case devices([UUID])
        case all
    }

    /// An operator's decision.
    package enum QuarantineAction: String, Sendable {
        /// Accepts the evidence: feedback publishes its commands.
        case release = "approved"
        /// Rejects the evidence.
        case discard = "discarded"
    }

    /// The quarantined registrations, the latest first, at most `limit`, and their total number.
    package func list(app: AppID?, limit: Int) async throws(PostgresError) -> (
        entries: [QuarantinedRegistration], total: Int
    ) {
        let rows = try await database.query(
            """
            SELECT device_id, app, provider, coalesce(environment, 'unknown') AS environment,
                (array_agg(reason ORDER BY observed_at DESC))[1] AS reason,
                coalesce((array_agg(detail ORDER BY observed_at DESC))[1], '') AS cause,
                count(*) AS count, min(observed_at) AS first, max(observed_at) AS last, count(*) OVER () AS total
            FROM feedback.evidence
            WHERE decision = 'quarantined' AND (\(app?.rawValue)::text IS NULL OR app = \(app?.rawValue))
            GROUP BY device_id, app, provider, environment
            ORDER BY max(observed_at) DESC, device_id LIMIT \(limit)
            """)
        var entries: [QuarantinedRegistration] = []
        var total = 0
        for row in rows {
            total = Int(try row.decode(Int64.self, at: "total"))
            entries.append(
                QuarantinedRegistration(
                    device: try row.decode(at: "device_id"), app: try row.decode(at: "app"),
                    provider: try row.decode(at: "provider"), environment: try row.decode(at: "environment"),
                    reason: try row.decode(at: "reason"), cause: try row.decode(at: "cause"),
                    count: Int(try row.decode(Int64.self, at: "count")), first: try row.decode(at: "first"),
                    last: try row.decode(at: "last")))
        }
        return (entries, total)
    }

    package func guards(app: AppID?) async throws(PostgresError) -> [TrippedGuard] {
        let rows = try await database.query(
            """
            SELECT app || '/' || provider || '/' || environment AS route, tripped_at, held_until, refused, answered
            FROM feedback.guard
            WHERE tripped_at IS NOT NULL AND (\(app?.rawValue)::text IS NULL OR app = \(app?.rawValue))
            ORDER BY route
            """)
        return try rows.map { row throws(PostgresError) in
            TrippedGuard(
                route: try row.decode(at: "route"), since: try row.decode(at: "tripped_at"),
                until: try row.decode(at: "held_until"), refused: try row.decode(at: "refused"),
                answered: try row.decode(at: "answered"))
        }
    }

    package struct Evidence: Hashable, Sendable {
        package var observed: Date
        package var finding: String
        package var reason: String
        package var decision: String
        package var cause: String?
        package var notification: UUID
    }

    /// All evidence about a registration, the latest first, decided or not.
    package func evidence(of device: UUID, limit: Int) async throws(PostgresError) -> [Evidence] {
        let rows = try await database.query(
            """
            SELECT observed_at, finding, reason, decision, detail, notification_id FROM feedback.evidence
            WHERE device_id = \(device) ORDER BY observed_at DESC LIMIT \(limit)
            """)
        return try rows.map { row throws(PostgresError) in
            Evidence(
                observed: try row.decode(at: "observed_at"), finding: try row.decode(at: "finding"),
                reason: try row.decode(at: "reason"), decision: try row.decode(at: "decision"),
                cause: try row.decode(at: "detail"), notification: try row.decode(at: "notification_id"))
        }
    }

    /// Decides quarantined evidence; repeating it has no effect. A decision about all of it also resets the guards: a
    /// continuing spike trips them again.
    ///
    /// - Returns: the number of registrations.
    package func apply(
        _ decision: QuarantineAction, about registrations: RegistrationSelection, app: AppID?, now: Date
    ) async throws -> Int {
        let (all, devices): (Bool, [UUID]) =
            switch registrations {
            case .all: (true, [])
            case .devices(let devices): (false, devices)
            }
        return try await database.transaction { transaction in
            if all {
                try await transaction.execute(
                    """
                    UPDATE feedback.guard SET tripped_at = NULL, held_until = NULL
                    WHERE tripped_at IS NOT NULL AND (\(app?.rawValue)::text IS NULL OR app = \(app?.rawValue))
                    """)
            }
            let rows = try await transaction.query(
                """
                WITH decided AS (
                    UPDATE feedback.evidence
                    SET decision = \(decision.rawValue), decided_at = \(now),
                        due_at = CASE WHEN \(decision == .release) THEN \(now)::timestamptz END
                    WHERE decision = 'quarantined' AND (\(app?.rawValue)::text IS NULL OR app = \(app?.rawValue))
                        AND (\(all) OR device_id = ANY(\(devices)::uuid[]))
                    RETURNING device_id
                )
                SELECT count(DISTINCT device_id) FROM decided
                """)
            return Int(try rows.single(Int64.self))
        }
    }
}
