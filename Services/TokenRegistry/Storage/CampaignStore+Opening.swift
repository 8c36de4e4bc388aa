import FoundationEssentials
import Postgres
import PushProtocol

extension CampaignStore {
    /// Side by side, so that several processes share a campaign, and one's wait for the broker is another's time.
    static let ranges = 8
    /// Below so many, one range is enough.
    static let worthSplitting: Int64 = 20_000
    /// How many pages of a table are looked at to find out about how many there are, and where to split.
    private static let samplePages = 400.0

    /// Makes a notification to an audience a campaign, or adds a part to its list of users. Again without harm.
    ///
    /// - Returns: the cursors of its ranges, to be published, of those that have not moved yet; none while parts of its
    ///   list are still to come.
    func open(_ notification: PushProtocol.Notification, to audience: Audience) async throws -> [CampaignCursor] {
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
            // Parts come side by side: one after the other, so that the last one sees that it is the last.
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
            var cursors: [CampaignCursor] = []
            let rows = try await transaction.query(
                """
                UPDATE registry.campaign_range SET copies = copies + 1
                WHERE campaign = \(audience.campaign) AND step = 0 AND NOT done
                RETURNING number, lower, copies
                """)
            for row in rows {
                cursors.append(
                    CampaignCursor(
                        trace, app: notification.app, campaign: audience.campaign,
                        range: try row.decode(Int.self, at: 0), from: try row.decode(String.self, at: 1),
                        copy: try row.decode(Int64.self, at: 2)))
            }
            return cursors.sorted { $0.range < $1.range }
        }
    }

    /// - Returns: whether everything is here that it takes to begin.
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

    /// Every hundredth of a part's users, in their order, from the middle of the first hundred on; of fewer, the one in the
    /// middle.
    private static func sample(of users: [UserID]) -> [String] {
        let ordered = users.map(\.rawValue).sorted()
        return stride(from: min(50, ordered.count / 2), to: ordered.count, by: 100).map { ordered[$0] }
    }

    /// Cuts the audience into ranges and begins.
    private func begin(
        _ audience: Audience, in app: AppID, _ transaction: PostgresTransaction
    ) async throws {
        let sample = try await transaction.query(try await sampling(of: audience, in: app, transaction))
        guard let row = sample.first else { return }
        let estimate = try row.decode(Int64.self, at: 0)
        var bounds: [String] = []
        for bound in try row.decode([String]?.self, at: 1) ?? [] where bound != bounds.last { bounds.append(bound) }
        if estimate < Self.worthSplitting { bounds = [] }
        for (number, lower) in ([""] + bounds).enumerated() {
            let upper = number < bounds.count ? bounds[number] : nil
            try await transaction.execute(
                """
                INSERT INTO registry.campaign_range (campaign, number, lower, upper, position)
                VALUES (\(audience.campaign), \(number)::integer, \(lower), \(upper), \(lower))
                """)
        }
        // Who is erased from now on is taken off the list, and needs to be found in no sample.
        try await transaction.execute(
            "UPDATE registry.campaign_part SET sample = '{}' WHERE campaign = \(audience.campaign) AND sample <> '{}'")
        try await transaction.execute(
            """
            UPDATE registry.campaign SET state = 'running', estimate = \(estimate), cut_off = clock_timestamp()
            WHERE id = \(audience.campaign)
            """)
    }

    /// About how many there are, and the users that divide them into about equal ranges: of a list from what is known of its
    /// parts, of a table from some of its pages, whose number does not grow with it.
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

/// A campaign's id that is another app's.
struct CampaignConflict: Error, CustomStringConvertible {
    let campaign: UUID

    var description: String { "the campaign \(campaign) is another app's; give each its own id" }
}

extension PushProtocol.Notification {
    /// What all messages of a campaign have in common.
    fileprivate var withoutList: PushProtocol.Notification {
        guard case .users(_, _, let of) = audience?.members else { return self }
        var notification = self
        notification.audience?.members = .users([], part: 1, of: of)
        return notification
    }
}

extension Audience {
    /// For people.
    var summary: String {
        let whom =
            switch members {
            case .everyone: "everyone"
            case .group(.topic(let name)): "topic \(name)"
            case .group(.tag(let name)): "tag \(name)"
            case .users(_, _, let of): of == 1 ? "a list" : "a list in \(of) parts"
            }
        guard devices != nil else { return whom }
        return "\(whom), some devices"
    }
}
