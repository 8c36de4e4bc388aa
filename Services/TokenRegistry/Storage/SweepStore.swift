import FoundationEssentials
import Postgres
import PushProtocol

/// Looks through the table for what was not seen any more, a small range of the primary key at a time: so nothing that
/// changes with each launch of an app needs an index (`messaging-and-data` 5.1, HOT). On the way it forgets whom it had to
/// remember as erased.
struct SweepStore: Sendable {
    /// The most registrations that one step looks at.
    static let usualStep = 1000

    private let database: PostgresPool
    private let step: Int

    init(_ database: PostgresPool, step: Int = usualStep) {
        self.database = database
        self.step = step
    }

    /// What a step came to.
    enum Progress: Hashable, Sendable {
        /// Another process is at it.
        case elsewhere
        /// So many were flagged or ended, and more of the table is left.
        case more(changed: Int)
        /// So many, and the end was reached: the next step begins anew.
        case finished(changed: Int)
    }

    /// Looks at the next range as of `now`.
    func advance(now: Timestamp) async throws -> Progress {
        try await database.transaction { transaction in
            let turn = try await transaction.query("SELECT position FROM registry.sweep FOR UPDATE SKIP LOCKED")
            guard let position = try turn.first?.decode(UUID.self, at: 0) else { return .elsewhere }
            let end = try await transaction.query(Self.end(of: step, after: position)).first?.decode(UUID.self, at: 0)
            let changed = try await transaction.execute(
                Self.marking(after: position, until: end ?? Self.last, now: now))
            let before = (now - StaleRule.forgetAfter).date
            _ = try await transaction.query(
                "SELECT registry.forget_erased(\(position), \(end ?? Self.last), \(before))")
            if end == nil {
                _ = try await transaction.query("SELECT registry.forget_erasures(\(before))")
                try await transaction.execute(Self.blanking(before: before))
            }
            try await transaction.execute("UPDATE registry.sweep SET position = \(end ?? Self.first)")
            return end == nil ? .finished(changed: changed) : .more(changed: changed)
        }
    }

    static let first = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
    static let last = UUID(uuid: (255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255))

    /// The last id of a step; no row when the table ends before it.
    static func end(of step: Int, after position: UUID) -> SQL {
        """
        SELECT device_id FROM registry.registration WHERE device_id > \(position)
        ORDER BY device_id OFFSET \(step - 1) LIMIT 1
        """
    }

    static func marking(after start: UUID, until end: UUID, now: Timestamp) -> SQL {
        let flagged = (now - StaleRule.flagAfter).date
        let ended = (now - StaleRule.endAfter).date
        return """
            UPDATE registry.registration SET
                stale_since = coalesce(stale_since, \(now.date)),
                state = CASE WHEN \(isForgotten(by: ended)) THEN 'stale' ELSE state END,
                state_reason = CASE WHEN \(isForgotten(by: ended)) THEN 'not seen for 270 days' END,
                state_changed_at = CASE WHEN \(isForgotten(by: ended)) THEN statement_timestamp()
                    ELSE state_changed_at END,
                ended_at = CASE WHEN \(isForgotten(by: ended)) THEN registered_at END
            WHERE device_id > \(start) AND device_id <= \(end) AND state = 'active'
                AND registered_at < \(flagged) AND (stale_since IS NULL OR \(isForgotten(by: ended)))
            """
    }

    /// Where a campaign's walks began and ended are users' ids: once it has long been over, nobody needs them. What came of
    /// it stays.
    private static func blanking(before moment: Date) -> SQL {
        """
        UPDATE registry.campaign_range g SET lower = '', upper = NULL, position = ''
        FROM registry.campaign c
        WHERE c.id = g.campaign AND c.finished_at < \(moment) AND (g.lower, g.position) <> ('', '')
        """
    }

    private static func isForgotten(by moment: Date) -> SQL {
        "(provider = 'fcm' AND kind IS DISTINCT FROM 'fcm-web' AND registered_at < \(moment))"
    }
}
