package import FoundationEssentials
package import Messaging
package import Postgres
import PushProtocol

/// Stores campaigns with their state and the progress of each range.
package struct CampaignStore: Sendable {
    /// How long a step holds its range before another process may claim it. A redelivered cursor does not wait for its
    /// own lease: the earlier holder is gone.
    static let lease = Duration.seconds(30)

    let database: PostgresPool
    let tokens: TokenKeys

    package init(_ database: PostgresPool, tokens: TokenKeys = .none) {
        self.database = database
        self.tokens = tokens
    }

    package enum CursorClaim: Hashable, Sendable {
        /// This process may make the step. The range ends at `upper`.
        case granted(upper: String?)
        /// Try again later: the campaign is paused, or another copy of this cursor is in progress.
        case later
        /// Drop the cursor: its step is done, or the campaign has ended.
        case void
    }

    /// Stores a range's progress and leases the range for one step.
    ///
    /// A range has one cursor, but the broker or the publisher may duplicate it. A duplicate is detected by its lower
    /// step, or by the lease, which holds one copy of the cursor only, even if another copy is redelivered.
    ///
    /// - Parameter redelivered: whether the broker requeued the cursor, so that its earlier consumer makes no step any
    ///   more.
    package func claim(_ cursor: CampaignCursor, redelivered: Bool) async throws(PostgresError) -> CursorClaim {
        let rows = try await database.query(Self.claiming(cursor, redelivered: redelivered))
        if let row = rows.first { return .granted(upper: try row.decode(String?.self, at: 0)) }
        guard let row = try await database.query(Self.standing(of: cursor)).first else { return .void }
        let state = try row.decode(Campaign.State.self, at: 0)
        switch state {
        case .done, .cancelled, .expired: return .void
        case .collecting, .paused: return try row.decode(Bool.self, at: 1) ? .void : .later
        case .running: return try row.decode(Bool.self, at: 1) ? .void : .later
        }
    }

    static func claiming(_ cursor: CampaignCursor, redelivered: Bool) -> SQL {
        let tally = cursor.tally
        return """
            UPDATE registry.campaign_range g SET
                step = \(cursor.step), position = \(cursor.position), users = \(tally.users),
                devices = \(tally.devices), pushes = \(tally.pushes), without = \(tally.without),
                looked = \(tally.looked), copy = \(cursor.copy), lease_until = clock_timestamp() + \(lease),
                dead_at = NULL, dead_reason = NULL
            FROM registry.campaign c
            WHERE g.campaign = \(cursor.campaign) AND g.number = \(cursor.range) AND c.id = g.campaign
                AND c.state = 'running' AND NOT g.done
                AND (g.step < \(cursor.step)
                    OR g.step = \(cursor.step) AND (g.lease_until < clock_timestamp()
                        OR \(redelivered) AND g.copy IS NOT DISTINCT FROM \(cursor.copy)))
            RETURNING g.upper
            """
    }

    private static func standing(of cursor: CampaignCursor) -> SQL {
        """
        SELECT c.state, g.done OR g.step > \(cursor.step)
        FROM registry.campaign_range g JOIN registry.campaign c ON c.id = g.campaign
        WHERE g.campaign = \(cursor.campaign) AND g.number = \(cursor.range)
        """
    }

    /// Releases the lease of a claim without a step.
    package func yield(_ cursor: CampaignCursor) async throws(PostgresError) {
        try await database.execute(
            """
            UPDATE registry.campaign_range SET lease_until = '-infinity'
            WHERE campaign = \(cursor.campaign) AND number = \(cursor.range) AND step = \(cursor.step)
                AND copy IS NOT DISTINCT FROM \(cursor.copy)
            """)
    }

    /// Marks a range whose cursor was dead-lettered. The next claim removes the mark.
    package func halt(_ cursor: CampaignCursor, because reason: Reason) async throws(PostgresError) {
        try await database.execute(
            """
            UPDATE registry.campaign_range SET dead_at = clock_timestamp(), dead_reason = \(reason.code),
                lease_until = '-infinity'
            WHERE campaign = \(cursor.campaign) AND number = \(cursor.range) AND step <= \(cursor.step) AND NOT done
            """)
    }

    /// Marks a range as done, and the campaign with its last range. Idempotent.
    ///
    /// - Returns: whether this ended the campaign.
    package func finish(_ cursor: CampaignCursor) async throws -> Bool {
        try await database.transaction { transaction in
            // Serialises the ranges, so that the last one sees all others.
            try await transaction.execute("SELECT FROM registry.campaign WHERE id = \(cursor.campaign) FOR UPDATE")
            try await transaction.execute(
                """
                UPDATE registry.campaign_range SET done = true
                WHERE campaign = \(cursor.campaign) AND number = \(cursor.range)
                """)
            return try await transaction.execute(
                """
                UPDATE registry.campaign c SET state = 'done', finished_at = clock_timestamp()
                WHERE c.id = \(cursor.campaign) AND c.state IN ('running', 'paused') AND NOT EXISTS (
                    SELECT FROM registry.campaign_range g WHERE g.campaign = c.id AND NOT g.done)
                """) > 0
        }
    }

    /// Whether no range of a campaign has found a user.
    package func hasNoUser(_ campaign: UUID) async throws(PostgresError) -> Bool {
        try await database.query(
            "SELECT coalesce(sum(users), 0) = 0 FROM registry.campaign_range WHERE campaign = \(campaign)"
        ).single()
    }

    /// Marks a campaign as expired: the notification's expiration has passed.
    package func expire(_ campaign: UUID) async throws {
        try await database.execute(
            """
            UPDATE registry.campaign SET state = 'expired', finished_at = clock_timestamp()
            WHERE id = \(campaign) AND state IN ('collecting', 'running', 'paused')
            """)
    }

    /// Reserves `count` pushes of a campaign's rate limit.
    ///
    /// - Returns: how long to wait before the next call; `nil` if the pushes may leave now.
    package func reserve(_ count: Int, of campaign: UUID, rate: Int) async throws(PostgresError) -> Duration? {
        let due = try await database.query(
            """
            UPDATE registry.campaign
            SET next_at = greatest(next_at, clock_timestamp()) + \(count) * interval '1 second' / \(rate)
            WHERE id = \(campaign) AND next_at <= clock_timestamp()
            RETURNING true
            """)
        if !due.isEmpty { return nil }
        let wait = try await database.query(
            "SELECT next_at - clock_timestamp() FROM registry.campaign WHERE id = \(campaign) AND isfinite(next_at)")
        return try wait.first?.decode(Duration.self, at: 0) ?? .zero
    }

    /// Returns reserved pushes that were not used.
    package func release(_ count: Int, of campaign: UUID, rate: Int) async throws(PostgresError) {
        guard count != 0 else { return }
        try await database.execute(
            """
            UPDATE registry.campaign SET next_at = next_at - \(count) * interval '1 second' / \(rate)
            WHERE id = \(campaign)
            """)
    }

    /// Reads a started campaign; `nil` if none has the id.
    package func campaign(_ id: UUID) async throws -> Campaign? {
        let rows = try await database.query(
            "SELECT notification, cut_off FROM registry.campaign WHERE id = \(id) AND cut_off IS NOT NULL")
        guard let row = rows.first else { return nil }
        let body = Array(try row.decode(String.self, at: 0).utf8)
        let notification = try PushProtocol.Notification.decode(wireBody: body)
        guard let audience = notification.audience else { return nil }
        return Campaign(notification: notification, audience: audience, cutOff: try row.decode(Date.self, at: 1))
    }
}

extension Campaign.State: PostgresValue {}
