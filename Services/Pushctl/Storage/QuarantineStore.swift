import FoundationEssentials
import Postgres
import PushProtocol

/// The quarantine of feedback, as an operator sees it and decides about it.
struct QuarantineStore: Sendable {
    private let database: PostgresPool

    init(_ database: PostgresPool) { self.database = database }

    /// One registration with everything that is held against it.
    struct Entry: Hashable, Sendable {
        var device: UUID
        var app: String
        var provider: String
        var environment: String
        /// Of the latest evidence: the provider's word, and why it was not believed.
        var reason: String
        var doubt: String
        var count: Int
        var first: Date
        var last: Date
    }

    /// A guard that is tripped.
    struct Guard: Hashable, Sendable {
        var lane: String
        var since: Date
        var until: Date
        var refused: Int64?
        var answered: Int64?
    }

    /// What a decision is about.
    enum Choice: Hashable, Sendable {
        case devices([UUID])
        case all
    }

    /// What an operator decides.
    enum Decision: String, Sendable {
        /// The evidence is believed: feedback publishes its commands.
        case release = "approved"
        /// The evidence is not believed: nothing follows from it.
        case discard = "discarded"
    }

    /// The registrations in quarantine, the latest first, at most `limit`, and how many there are.
    func list(app: AppID?, limit: Int) async throws(PostgresError) -> (entries: [Entry], total: Int) {
        let rows = try await database.query(
            """
            SELECT device_id, app, provider, coalesce(environment, 'unknown') AS environment,
                (array_agg(reason ORDER BY observed_at DESC))[1] AS reason,
                coalesce((array_agg(detail ORDER BY observed_at DESC))[1], '') AS doubt,
                count(*) AS count, min(observed_at) AS first, max(observed_at) AS last, count(*) OVER () AS total
            FROM feedback.evidence
            WHERE decision = 'quarantined' AND (\(app?.rawValue)::text IS NULL OR app = \(app?.rawValue))
            GROUP BY device_id, app, provider, environment
            ORDER BY max(observed_at) DESC, device_id LIMIT \(limit)
            """)
        var entries: [Entry] = []
        var total = 0
        for row in rows {
            total = Int(try row.decode(Int64.self, at: "total"))
            entries.append(
                Entry(
                    device: try row.decode(at: "device_id"), app: try row.decode(at: "app"),
                    provider: try row.decode(at: "provider"), environment: try row.decode(at: "environment"),
                    reason: try row.decode(at: "reason"), doubt: try row.decode(at: "doubt"),
                    count: Int(try row.decode(Int64.self, at: "count")), first: try row.decode(at: "first"),
                    last: try row.decode(at: "last")))
        }
        return (entries, total)
    }

    /// The guards that are tripped.
    func guards(app: AppID?) async throws(PostgresError) -> [Guard] {
        let rows = try await database.query(
            """
            SELECT app || '/' || provider || '/' || environment AS lane, tripped_at, held_until, refused, answered
            FROM feedback.guard
            WHERE tripped_at IS NOT NULL AND (\(app?.rawValue)::text IS NULL OR app = \(app?.rawValue))
            ORDER BY lane
            """)
        var guards: [Guard] = []
        for row in rows {
            guards.append(
                Guard(
                    lane: try row.decode(at: "lane"), since: try row.decode(at: "tripped_at"),
                    until: try row.decode(at: "held_until"), refused: try row.decode(at: "refused"),
                    answered: try row.decode(at: "answered")))
        }
        return guards
    }

    /// One piece of evidence.
    struct Piece: Hashable, Sendable {
        var observed: Date
        var finding: String
        var reason: String
        var decision: String
        var doubt: String?
        var notification: UUID
    }

    /// Everything that was ever said about a registration, the latest first, whatever became of it.
    func evidence(of device: UUID, limit: Int) async throws(PostgresError) -> [Piece] {
        let rows = try await database.query(
            """
            SELECT observed_at, finding, reason, decision, detail, notification_id FROM feedback.evidence
            WHERE device_id = \(device) ORDER BY observed_at DESC LIMIT \(limit)
            """)
        var pieces: [Piece] = []
        for row in rows {
            pieces.append(
                Piece(
                    observed: try row.decode(at: "observed_at"), finding: try row.decode(at: "finding"),
                    reason: try row.decode(at: "reason"), decision: try row.decode(at: "decision"),
                    doubt: try row.decode(at: "detail"), notification: try row.decode(at: "notification_id")))
        }
        return pieces
    }

    /// Decides about what is quarantined now; deciding twice is deciding once. A decision about all of it also puts the
    /// guards back to rest: a storm that goes on trips them again.
    ///
    /// - Returns: how many registrations it was about.
    func decide(
        _ decision: Decision, about choice: Choice, app: AppID?, now: Date
    ) async throws -> Int {
        let (all, devices): (Bool, [UUID]) =
            switch choice {
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
