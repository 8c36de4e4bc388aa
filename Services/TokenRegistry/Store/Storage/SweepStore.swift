package import Logging
package import Postgres
package import PushProtocol
import FoundationEssentials

/// Walks through the table in small primary-key ranges, ends stale registrations, and deletes old ended ones and
/// tombstones. So no column that changes at each app launch needs an index, and its updates stay heap-only
/// (`Shared/Messaging/BrokerFacts.md`, 5.1 Heap-only updates).
package struct SweepStore: Sendable {
    /// Maximum registrations a step reads.
    package static let defaultStep = 1000

    private let database: PostgresPool
    private let terms: RetentionTerms
    private let step: Int
    private let logger: Logger

    package init(
        _ database: PostgresPool, terms: RetentionTerms = .usual, step: Int = defaultStep, logger: Logger = .registry
    ) {
        self.logger = logger
        self.database = database
        self.terms = terms
        self.step = step
    }

    package enum Progress: Hashable, Sendable {
        /// Another process runs a step.
        case elsewhere
        /// `changed` rows were flagged or ended, `deleted` rows deleted; the walk continues.
        case more(changed: Int, deleted: Int)
        /// The same, and the walk ended. The next step starts a new walk.
        case finished(changed: Int, deleted: Int)
    }

    /// Processes the next range as of `now`. Skips a row that fails alone.
    package func advance(now: Timestamp) async throws -> Progress {
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
            // First, so that a fallback that ends now is not flagged as stale.
            let faded = try await transaction.execute(
                Self.fallbackExpiry(after: position, until: end ?? Self.last, now: now))
            let expired = try await transaction.execute(
                Self.subscriptionExpiry(after: position, until: end ?? Self.last, now: now))
            let changed = try await transaction.execute(
                Self.marking(after: position, until: end ?? Self.last, now: now))
            let before = (now - InactivityRule.forgetAfter).date
            let forgotten = try await transaction.query(
                "SELECT registry.forget_erased(\(position), \(end ?? Self.last), \(before))"
            ).single(Int.self)
            let ended = try await forgetEnded(after: position, until: end ?? Self.last, now: now, in: transaction)
            if end == nil {
                _ = try await transaction.query("SELECT registry.forget_erasures(\(before))")
                try await transaction.execute(Self.positionClearing(before: before))
            }
            try await transaction.execute("UPDATE registry.sweep SET position = \(end ?? Self.first)")
            let deleted = forgotten + ended
            return end == nil
                ? .finished(changed: changed + faded + expired, deleted: deleted)
                : .more(changed: changed + faded + expired, deleted: deleted)
        }
    }

    private func forgetEnded(
        after start: UUID, until end: UUID, now: Timestamp, in transaction: PostgresTransaction
    ) async throws -> Int {
        let before = (now - terms.ended).date
        let devices = try await transaction.query(Self.ended(after: start, until: end, before: before))
            .column(UUID.self)
        guard !devices.isEmpty else { return 0 }
        return try await transaction.query("SELECT registry.forget_ended(\(devices)::uuid[])").single(Int.self)
    }

    static let first = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
    static let last = UUID(uuid: (255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255))

    /// Queries the last id of a step. Returns no row if the table ends before.
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
                state = CASE WHEN \(isExpiredByProvider(by: ended)) THEN 'stale' ELSE state END,
                state_reason = CASE WHEN \(isExpiredByProvider(by: ended)) THEN 'not seen for 270 days' END,
                state_changed_at = CASE WHEN \(isExpiredByProvider(by: ended)) THEN statement_timestamp()
                    ELSE state_changed_at END,
                ended_at = CASE WHEN \(isExpiredByProvider(by: ended)) THEN registered_at END
            WHERE device_id > \(start) AND device_id <= \(end) AND state = 'active'
                AND registered_at < \(flagged) AND (stale_since IS NULL OR \(isExpiredByProvider(by: ended)))
            """
    }

    /// Ends expired fallbacks of installations whose FID no provider has refused. Without such a FID, the token is the
    /// registration that works.
    static func fallbackExpiry(after start: UUID, until end: UUID, now: Timestamp) -> SQL {
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

    /// Ends Web Push subscriptions whose time has passed. A later registration of the browser revives them.
    static func subscriptionExpiry(after start: UUID, until end: UUID, now: Timestamp) -> SQL {
        """
        UPDATE registry.registration SET state = 'stale', state_reason = 'the browser''s subscription expired',
            stale_since = coalesce(stale_since, expires_at), state_changed_at = statement_timestamp(),
            ended_at = expires_at
        WHERE device_id > \(start) AND device_id <= \(end) AND state = 'active' AND expires_at <= \(now.date)
        """
    }

    /// Queries and locks old ended registrations that nothing needs. Skips locked rows until the next walk.
    ///
    /// Two kinds are kept longer. A moved registration redirects requests for the wrong environment while its successor
    /// exists. A replaced one identifies the audience of campaigns that began before (decision 29).
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

    /// Removes the users' ids from the bounds and positions of campaigns that ended long ago. The counts stay.
    private static func positionClearing(before moment: Date) -> SQL {
        """
        UPDATE registry.campaign_range g SET lower = '', upper = NULL, position = ''
        FROM registry.campaign c
        WHERE c.id = g.campaign AND c.finished_at < \(moment) AND (g.lower, g.position) <> ('', '')
        """
    }

    private static func isExpiredByProvider(by moment: Date) -> SQL {
        """
        (provider = 'fcm' AND kind IS DISTINCT FROM 'fcm-web' AND platform IS DISTINCT FROM 'ios'
            AND registered_at < \(moment))
        """
    }
}
