package import FoundationEssentials
package import Postgres
package import PushProtocol

/// Reads and controls campaigns, for operators.
extension CampaignStore {
    package struct CampaignSummary: Hashable, Sendable {
        package var id: UUID
        package var app: String
        package var rule: String
        package var audience: String
        package var state: String
        package var created: Date
        package var begun: Date?
        package var finished: Date?
        /// The maximum devices a second; `nil` is unlimited.
        package var rate: Int?
        /// The estimated number of registrations (everyone) or users (group or list) at the start.
        package var estimate: Int64?
        /// How many of them were processed.
        package var looked: Int64
        package var users: Int64
        package var devices: Int64
        package var pushes: Int64
        package var without: Int64
        package var ranges: Int
        package var rangesDone: Int
        /// Ranges whose cursor message is dead-lettered, and the reasons. Replaying the cursor continues the range.
        package var rangesDead: Int
        package var deadReasons: [String]
        /// The database's clock.
        package var now: Date
    }

    /// An operator's command.
    package enum CampaignAction: String, Sendable, CaseIterable {
        case pause, resume, cancel

        /// The state of a campaign after the action.
        package var state: String {
            switch self {
            case .pause: "paused"
            case .resume: "running"
            case .cancel: "cancelled"
            }
        }
    }

    /// The campaigns, the latest first, at most `limit`.
    package func summaries(app: AppID?, unfinished: Bool, limit: Int) async throws(PostgresError) -> [CampaignSummary] {
        try await summaries(
            """
            WHERE (\(app?.rawValue)::text IS NULL OR c.app = \(app?.rawValue))
                AND (NOT \(unfinished) OR c.finished_at IS NULL)
            """, limit: limit)
    }

    package func summary(of id: UUID) async throws(PostgresError) -> CampaignSummary? {
        try await summaries("WHERE c.id = \(id)", limit: 1).first
    }

    private func summaries(_ condition: SQL, limit: Int) async throws(PostgresError) -> [CampaignSummary] {
        let rows = try await database.query(
            """
            SELECT c.id, c.app, c.rule, c.audience, c.state, c.created_at, c.cut_off, c.finished_at, c.rate, c.estimate,
                coalesce(g.looked, 0)::bigint AS looked, coalesce(g.users, 0)::bigint AS users,
                coalesce(g.devices, 0)::bigint AS devices, coalesce(g.pushes, 0)::bigint AS pushes,
                coalesce(g.without, 0)::bigint AS without, coalesce(g.n, 0) AS ranges, coalesce(g.done, 0) AS done,
                coalesce(g.dead, 0) AS dead, coalesce(g.dead_reasons, '{}') AS dead_reasons, clock_timestamp() AS now
            FROM (
                SELECT * FROM registry.campaign c \(condition) ORDER BY c.created_at DESC, c.id LIMIT \(limit)
            ) AS c
            LEFT JOIN LATERAL (
                SELECT sum(looked) AS looked, sum(users) AS users, sum(devices) AS devices, sum(pushes) AS pushes,
                    sum(without) AS without, count(*) AS n, count(*) FILTER (WHERE g.done) AS done,
                    count(*) FILTER (WHERE g.dead_at IS NOT NULL AND NOT g.done) AS dead,
                    array_agg(DISTINCT g.dead_reason) FILTER (WHERE g.dead_at IS NOT NULL AND NOT g.done)
                        AS dead_reasons
                FROM registry.campaign_range g WHERE g.campaign = c.id
            ) AS g ON true
            ORDER BY c.created_at DESC, c.id
            """)
        return try rows.map(CampaignSummary.init)
    }

    /// Changes the state of an unfinished campaign; repeating it has no effect. Queued pushes are still sent. The
    /// registry deletes the list of a cancelled campaign.
    ///
    /// - Parameter app: only a campaign of this app.
    /// - Returns: whether the state changed.
    package func apply(
        _ action: CampaignAction, to id: UUID, of app: AppID? = nil
    ) async throws(PostgresError) -> Bool {
        let ofApp: SQL = app.map { "AND app = \($0.rawValue)" } ?? ""
        let change: SQL =
            switch action {
            case .pause: "state = 'paused' WHERE state = 'running'"
            case .resume: "state = 'running' WHERE state = 'paused'"
            case .cancel:
                """
                state = 'cancelled', finished_at = clock_timestamp()
                WHERE state IN ('collecting', 'running', 'paused')
                """
            }
        return try await database.execute("UPDATE registry.campaign SET \(change) AND id = \(id) \(ofApp)") > 0
    }
}

extension CampaignStore.CampaignSummary {
    fileprivate init(_ row: PostgresRow) throws(PostgresError) {
        self.init(
            id: try row.decode(at: "id"), app: try row.decode(at: "app"), rule: try row.decode(at: "rule"),
            audience: try row.decode(at: "audience"), state: try row.decode(at: "state"),
            created: try row.decode(at: "created_at"), begun: try row.decode(at: "cut_off"),
            finished: try row.decode(at: "finished_at"),
            rate: try row.decode(Int32?.self, at: "rate").map(Int.init), estimate: try row.decode(at: "estimate"),
            looked: try row.decode(at: "looked"), users: try row.decode(at: "users"),
            devices: try row.decode(at: "devices"), pushes: try row.decode(at: "pushes"),
            without: try row.decode(at: "without"), ranges: Int(try row.decode(Int64.self, at: "ranges")),
            rangesDone: Int(try row.decode(Int64.self, at: "done")),
            rangesDead: Int(try row.decode(Int64.self, at: "dead")),
            deadReasons: try row.decode([String].self, at: "dead_reasons"), now: try row.decode(at: "now"))
    }
}
