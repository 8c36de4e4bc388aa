import FoundationEssentials
import Logging
import Postgres
import PushProtocol

/// Looks through the table for what was not seen any more, a small range of the primary key at a time: so nothing that
/// changes with each launch of an app needs an index (`messaging-and-data` 5.1, HOT). On the way it deletes what ended long ago
/// and forgets whom it had to remember as erased.
struct SweepStore: Sendable {
    /// The most registrations that one step looks at.
    static let usualStep = 1000

    private let database: PostgresPool
    private let terms: RetentionTerms
    private let step: Int
    private let logger: Logger

    init(
        _ database: PostgresPool, terms: RetentionTerms = .usual, step: Int = usualStep, logger: Logger = .registry
    ) {
        self.logger = logger
        self.database = database
        self.terms = terms
        self.step = step
    }

    /// What a step came to.
    enum Progress: Hashable, Sendable {
        /// Another process is at it.
        case elsewhere
        /// So many were flagged or ended, so many deleted, and more of the table is left.
        case more(changed: Int, deleted: Int)
        /// So many, and the end was reached: the next step begins anew.
        case finished(changed: Int, deleted: Int)
    }

    /// Looks at the next range as of `now`. Passes over a row that fails alone.
    func advance(now: Timestamp) async throws -> Progress {
        try await WalkStep.halving(step, in: "registry.registration", logger) { rows, passes in
            try await advance(now: now, step: rows, passes: passes)
        }
    }

    private func advance(now: Timestamp, step: Int, passes: Bool) async throws -> Progress {
        try await database.transaction { transaction in
            let turn = try await transaction.query("SELECT position FROM registry.sweep FOR UPDATE SKIP LOCKED")
            guard let position = try turn.first?.decode(UUID.self, at: 0) else { return .elsewhere }
            let end = try await transaction.query(Self.end(of: step, after: position)).first?.decode(UUID.self, at: 0)
            if passes {
                try await transaction.execute("UPDATE registry.sweep SET position = \(end ?? Self.first)")
                return end == nil ? .finished(changed: 0, deleted: 0) : .more(changed: 0, deleted: 0)
            }
            // First: a fallback that ends now is not flagged as stale.
            let faded = try await transaction.execute(
                Self.fading(after: position, until: end ?? Self.last, now: now))
            let changed = try await transaction.execute(
                Self.marking(after: position, until: end ?? Self.last, now: now))
            let before = (now - InactivityRule.forgetAfter).date
            let forgotten = try await transaction.query(
                "SELECT registry.forget_erased(\(position), \(end ?? Self.last), \(before))"
            ).single(Int.self)
            let ended = try await forgetEnded(after: position, until: end ?? Self.last, now: now, in: transaction)
            if end == nil {
                _ = try await transaction.query("SELECT registry.forget_erasures(\(before))")
                try await transaction.execute(Self.blanking(before: before))
            }
            try await transaction.execute("UPDATE registry.sweep SET position = \(end ?? Self.first)")
            let deleted = forgotten + ended
            return end == nil
                ? .finished(changed: changed + faded, deleted: deleted)
                : .more(changed: changed + faded, deleted: deleted)
        }
    }

    private func forgetEnded(
        after start: UUID, until end: UUID, now: Timestamp, in transaction: PostgresTransaction
    ) async throws -> Int {
        let before = (now - terms.ended).date
        var devices: [UUID] = []
        for row in try await transaction.query(Self.ended(after: start, until: end, before: before)) {
            devices.append(try row.decode(UUID.self, at: 0))
        }
        guard !devices.isEmpty else { return 0 }
        return try await transaction.query("SELECT registry.forget_ended(\(devices)::uuid[])").single(Int.self)
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
        let flagged = (now - InactivityRule.flagAfter).date
        let ended = (now - InactivityRule.endAfter).date
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

    /// Ends fallbacks whose time is over while their installation still has a FID that no provider has refused. Without such
    /// a FID the token is the registration that works.
    static func fading(after start: UUID, until end: UUID, now: Timestamp) -> SQL {
        """
        UPDATE registry.registration r SET state = 'replaced', state_reason = 'a FID took its place',
            state_changed_at = statement_timestamp(), ended_at = r.fallback_until
        WHERE r.device_id > \(start) AND r.device_id <= \(end) AND r.state = 'active'
            AND r.fallback_until < \(now.date) AND EXISTS (
                SELECT FROM registry.registration f
                WHERE f.app = r.app AND f.installation = r.installation AND f.user_id = r.user_id
                    AND f.state = 'active' AND f.kind = 'fid' AND f.suspected_at IS NULL)
        """
    }

    /// What ended before a moment and nothing needs any more, locked: nobody revives it until it is deleted. A row that
    /// somebody is writing right now is left for the next time; nobody is waited for.
    ///
    /// Two things are needed longer. Where a registration was moved to its environment, whoever goes on naming the wrong
    /// one means the right one, for as long as that is known. And a campaign that began before a token was replaced finds
    /// by the old one who is meant (decision 29).
    static func ended(after start: UUID, until end: UUID, before: Date) -> SQL {
        """
        SELECT r.device_id FROM registry.registration r
        WHERE r.device_id > \(start) AND r.device_id <= \(end) AND r.state NOT IN ('active', 'erased')
            AND greatest(r.state_changed_at, r.ended_at) < \(before)
            AND (r.successor IS NULL
                OR NOT EXISTS (SELECT FROM registry.registration s WHERE s.device_id = r.successor))
            AND (r.state <> 'replaced' OR NOT EXISTS (
                SELECT FROM registry.campaign c
                WHERE c.app = r.app AND c.finished_at IS NULL AND c.cut_off <= r.state_changed_at))
        FOR UPDATE OF r SKIP LOCKED
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
        """
        (provider = 'fcm' AND kind IS DISTINCT FROM 'fcm-web' AND platform IS DISTINCT FROM 'ios'
            AND registered_at < \(moment))
        """
    }
}
