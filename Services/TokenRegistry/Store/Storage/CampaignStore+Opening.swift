package import FoundationEssentials
package import PushProtocol
import Postgres

extension CampaignStore {
    /// Ranges of a campaign. Several processes share them, and one range uses the time another waits for the broker.
    static let ranges = 8
    /// Smaller audiences get a single range.
    static let minimumSplitSize: Int64 = 20_000
    /// Table pages sampled to estimate the audience's size and the range bounds.
    private static let samplePages = 400.0

    /// Opens a campaign for a notification to an audience, or adds a part to its user list. Idempotent.
    ///
    /// - Returns: the cursors to publish, one for each range that has not started. Empty while parts of the list are
    ///   missing.
    package func open(_ notification: PushProtocol.Notification, to audience: Audience) async throws -> [CampaignCursor]
    {
        let trace = notification.trace
        let body = String(decoding: try notification.withoutList.wireBody(), as: UTF8.self)
        return try await database.transaction { transaction in
            try await transaction.execute(
                """
                INSERT INTO registry.campaign (id, app, rule, notification, audience, rate)
                VALUES (\(audience.campaign), \(notification.app.rawValue), \(notification.rule), \(body),
                    \(audience.summary), \(audience.rate)::integer)
                ON CONFLICT (id) DO NOTHING
                """)
            // Serialises the parts, so that the last one sees all others.
            let known = try await transaction.query(
                """
                SELECT state FROM registry.campaign
                WHERE id = \(audience.campaign) AND app = \(notification.app.rawValue) FOR UPDATE
                """)
            guard let state = try known.first?.decode(Campaign.State.self, at: 0) else {
                throw CampaignConflict(campaign: audience.campaign)
            }
            if state == .collecting {
                guard try await collect(audience, in: transaction) else { return [] }
                try await begin(audience, in: notification.app, transaction)
            }
            let rows = try await transaction.query(
                """
                UPDATE registry.campaign_range SET copies = copies + 1
                WHERE campaign = \(audience.campaign) AND step = 0 AND NOT done
                RETURNING number, lower, copies
                """)
            return try rows.map { row in
                CampaignCursor(
                    trace, app: notification.app, campaign: audience.campaign,
                    range: try row.decode(Int.self, at: 0), from: try row.decode(String.self, at: 1),
                    copy: try row.decode(Int64.self, at: 2))
            }.sorted { $0.range < $1.range }
        }
    }

    /// Stores a list part. Returns whether all parts have arrived.
    private func collect(_ audience: Audience, in transaction: PostgresTransaction) async throws -> Bool {
        guard case .users(let users, let part, let of) = audience.members else { return true }
        let fresh = try await transaction.execute(
            """
            INSERT INTO registry.campaign_member (campaign, user_id)
            SELECT DISTINCT \(audience.campaign)::uuid, user_id FROM unnest(\(users.map(\.rawValue))::text[]) AS u (user_id)
            ON CONFLICT DO NOTHING
            """)
        try await transaction.execute(
            """
            INSERT INTO registry.campaign_part (campaign, number, users, sample)
            VALUES (\(audience.campaign), \(part)::integer, \(fresh), \(Self.sample(of: users)))
            ON CONFLICT DO NOTHING
            """)
        let parts = try await transaction.query(
            "SELECT count(*) FROM registry.campaign_part WHERE campaign = \(audience.campaign)")
        return try parts.single(Int.self) >= of
    }

    /// Every hundredth user of a part in order, beginning at the 50th. The middle one of a smaller part.
    private static func sample(of users: [UserID]) -> [String] {
        let ordered = users.map(\.rawValue).sorted()
        return stride(from: min(50, ordered.count / 2), to: ordered.count, by: 100).map { ordered[$0] }
    }

    /// Splits the audience into ranges and starts the campaign.
    private func begin(
        _ audience: Audience, in app: AppID, _ transaction: PostgresTransaction
    ) async throws {
        let sample = try await transaction.query(try await sampling(of: audience, in: app, transaction))
        guard let row = sample.first else { return }
        let estimate = try row.decode(Int64.self, at: 0)
        var bounds: [String] = []
        for bound in try row.decode([String]?.self, at: 1) ?? [] where bound != bounds.last { bounds.append(bound) }
        if estimate < Self.minimumSplitSize { bounds = [] }
        for (number, lower) in ([""] + bounds).enumerated() {
            let upper = number < bounds.count ? bounds[number] : nil
            try await transaction.execute(
                """
                INSERT INTO registry.campaign_range (campaign, number, lower, upper, position)
                VALUES (\(audience.campaign), \(number)::integer, \(lower), \(upper), \(lower))
                """)
        }
        // An erasure from now on removes users from the list, so the samples may go.
        try await transaction.execute(
            "UPDATE registry.campaign_part SET sample = '{}' WHERE campaign = \(audience.campaign) AND sample <> '{}'")
        try await transaction.execute(
            """
            UPDATE registry.campaign SET state = 'running', estimate = \(estimate), cut_off = clock_timestamp()
            WHERE id = \(audience.campaign)
            """)
    }

    /// Queries an estimate of the audience's size and the users that split it into ranges of similar size. Lists use
    /// the samples of their parts; tables use a fixed number of pages.
    private func sampling(
        of audience: Audience, in app: AppID, _ transaction: PostgresTransaction
    ) async throws -> SQL {
        func share(of table: SQL) async throws -> Double {
            let bytes = try await transaction.query("SELECT pg_relation_size(\(table))").single(Int64.self)
            return min(100, 100 * Self.samplePages / max(1, Double(bytes) / 8192))
        }
        switch audience.members {
        case .everyone:
            let share = try await share(of: "'registry.registration'")
            return """
                SELECT (count(*) * 100 / \(share))::bigint, \(Self.bounds) FROM registry.registration
                TABLESAMPLE SYSTEM (\(share)) WHERE app = \(app.rawValue) AND state = 'active'
                """
        case .group(let group):
            let share = try await share(of: "'registry.membership'")
            return """
                SELECT (count(*) * 100 / \(share))::bigint, \(Self.bounds) FROM registry.membership
                TABLESAMPLE SYSTEM (\(share))
                WHERE app = \(app.rawValue) AND kind = \(group.kind) AND name = \(group.name.rawValue) AND active
                """
        case .users:
            return """
                SELECT (SELECT sum(users)::bigint FROM registry.campaign_part WHERE campaign = \(audience.campaign)),
                    (SELECT \(Self.bounds) FROM registry.campaign_part p, unnest(p.sample) AS s (user_id)
                        WHERE p.campaign = \(audience.campaign))
                """
        }
    }

    private static var bounds: SQL {
        let shares = (1..<ranges).map { Double($0) / Double(ranges) }
        return "percentile_disc(\(shares)) WITHIN GROUP (ORDER BY user_id)"
    }
}

/// The campaign's id is in use by another app.
package struct CampaignConflict: Error, CustomStringConvertible {
    package let campaign: UUID

    package var description: String { "campaign \(campaign) belongs to another app; give each campaign its own id" }
}

extension PushProtocol.Notification {
    /// The notification that all messages of a campaign share, without the listed users.
    fileprivate var withoutList: PushProtocol.Notification {
        guard case .users(_, _, let of) = audience?.members else { return self }
        var notification = self
        notification.audience?.members = .users([], part: 1, of: of)
        return notification
    }
}

extension Audience {
    /// The audience in words, for display.
    var summary: String {
        let whom =
            switch members {
            case .everyone: "everyone"
            case .group(.topic(let name)): "topic \(name)"
            case .group(.tag(let name)): "tag \(name)"
            case .users(_, _, let of): of == 1 ? "a list" : "a list in \(of) parts"
            }
        let options = [
            devices.map { _ in "some devices" }, holdOut.map { "\($0) % held out" }, resolves ? "for rules" : nil,
        ]
        return ([whom] + options.compactMap(\.self)).joined(separator: ", ")
    }
}
