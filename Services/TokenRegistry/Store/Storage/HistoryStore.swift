package import FoundationEssentials
package import Logging
package import Postgres
package import PushProtocol

/// Deletes old memberships, campaigns and imports. Ended memberships are found by a walk through the table: an index on
/// their time would be rewritten by each new subscription.
package struct HistoryStore: Sendable {
    /// Maximum memberships a step reads, and maximum campaigns deleted at once.
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
        /// `memberships` rows were deleted; the walk continues.
        case more(memberships: Int)
        /// `memberships` rows were deleted and the walk ended, as did the deletion of records. The next step starts a
        /// new walk.
        case finished(memberships: Int, Records)
    }

    /// Numbers of deleted records, and inactive campaigns that have expired.
    package struct Records: Hashable, Sendable {
        package var campaigns = 0
        package var imports = 0
        package var expired: [UUID] = []
    }

    /// A position in the order of the table's primary key. Empty: before the first row.
    struct Place: Hashable, Sendable {
        var app = ""
        var kind = ""
        var name = ""
        var user = ""
    }

    /// Processes the next memberships as of `now`, and the records at the end of the walk. Skips a row that fails
    /// alone.
    package func advance(now: Timestamp) async throws -> Progress {
        let progress = try await WalkStep.halving(step, in: "registry.membership", logger) { rows, passes in
            try await advance(now: now, step: rows, passes: passes)
        }
        guard case .finished(let memberships, _) = progress else { return progress }
        return .finished(memberships: memberships, try await clearRecords(now: now))
    }

    private func advance(now: Timestamp, step: Int, passes: Bool) async throws -> Progress {
        try await database.transaction { transaction in
            let turn = try await transaction.query(
                "SELECT app, kind, name, user_id FROM registry.membership_sweep FOR UPDATE SKIP LOCKED")
            guard let place = try turn.first.map(Place.init) else { return .elsewhere }
            let end = try await transaction.query(Self.end(of: step, after: place)).first.map(Place.init)
            try await transaction.execute(Self.disablingSequentialScan)
            let memberships =
                passes
                ? 0
                : try await transaction.execute(
                    Self.deletion(after: place, until: end, before: (now - terms.ended).date))
            let next = end ?? Place()
            try await transaction.execute(
                """
                UPDATE registry.membership_sweep
                SET app = \(next.app), kind = \(next.kind), name = \(next.name), user_id = \(next.user)
                """)
            return end == nil ? .finished(memberships: memberships, .init()) : .more(memberships: memberships)
        }
    }

    /// Expires and deletes records. Each kind has its own statement, so that a failure affects one kind.
    private func clearRecords(now: Timestamp) async throws -> Records {
        let before = (now - terms.records).date
        var records = Records()
        records.expired = try await passing("registry.campaign", []) { try await expire(before: before) }
        records.campaigns = try await forgetCampaigns(before: before)
        records.imports = try await passing("registry.import", 0) {
            try await database.query("SELECT registry.forget_imports(\(before))").single(Int.self)
        }
        return records
    }

    private func expire(before moment: Date) async throws(PostgresError) -> [UUID] {
        try await database.query(Self.expiry(before: moment)).column(UUID.self)
    }

    /// Deletes campaigns in one statement, or one by one after a failure.
    private func forgetCampaigns(before moment: Date) async throws -> Int {
        let finished = try await database.query(Self.finished(before: moment, limit: step)).column(UUID.self)
        guard !finished.isEmpty else { return 0 }
        do { return try await forget(finished) } catch let error as PostgresError where error.mayConcernOneRow {}
        var count = 0
        for campaign in finished {
            count += try await passing("registry.campaign", 0) { try await forget([campaign]) }
        }
        return count
    }

    private func forget(_ campaigns: [UUID]) async throws -> Int {
        try await database.query("SELECT registry.forget_campaigns(\(campaigns)::uuid[])").single(Int.self)
    }

    /// Returns `other` if the statement fails while the database is available.
    private func passing<R>(_ table: String, _ other: R, _ body: () async throws -> R) async throws -> R {
        do { return try await body() } catch let error as PostgresError where error.mayConcernOneRow {
            WalkStep.tell(error, in: table, logger)
            return other
        }
    }

    /// Queries the last membership of a step. Returns no row if the table ends before.
    static func end(of step: Int, after place: Place) -> SQL {
        """
        SELECT m.app, m.kind, m.name, m.user_id FROM registry.membership m WHERE \(isBehind(place))
        ORDER BY m.app, m.kind, m.name, m.user_id OFFSET \(step - 1) LIMIT 1
        """
    }

    /// Prevents a sequential scan. For a row comparison the planner estimates the first column only. If one app has
    /// most rows, it would take a step for the whole table.
    static let disablingSequentialScan: SQL = "SET LOCAL enable_seqscan = off"

    /// Deletes memberships that ended before a moment. Skips locked rows until the next walk; keeps members that have
    /// rejoined.
    static func deletion(after place: Place, until end: Place?, before: Date) -> SQL {
        let bound: SQL = end.map { "AND \(key) <= (\($0.app), \($0.kind), \($0.name), \($0.user))" } ?? ""
        return """
            DELETE FROM registry.membership WHERE ctid = ANY (ARRAY(
                SELECT m.ctid FROM registry.membership m
                WHERE \(isBehind(place)) \(bound) AND NOT m.active AND m.at < \(before)
                FOR UPDATE SKIP LOCKED))
            """
    }

    private static let key: SQL = "(m.app, m.kind, m.name, m.user_id)"

    private static func isBehind(_ place: Place) -> SQL {
        "\(key) > (\(place.app), \(place.kind), \(place.name), \(place.user))"
    }

    /// Expires inactive campaigns: parts of the list never came, or a pause was forgotten. An unfinished campaign keeps
    /// its list and the registrations that were replaced since it began.
    static func expiry(before: Date) -> SQL {
        """
        UPDATE registry.campaign c SET state = 'expired', finished_at = clock_timestamp()
        WHERE c.finished_at IS NULL AND c.created_at < \(before) AND c.next_at < \(before)
            AND NOT EXISTS (
                SELECT FROM registry.campaign_range g WHERE g.campaign = c.id AND g.lease_until >= \(before))
        RETURNING c.id
        """
    }

    /// Queries the campaigns that finished before a moment, oldest first.
    static func finished(before: Date, limit: Int) -> SQL {
        """
        SELECT c.id FROM registry.campaign c WHERE c.finished_at < \(before)
        ORDER BY c.finished_at LIMIT \(limit) FOR UPDATE SKIP LOCKED
        """
    }

    /// Removes a user from the walk's stored position. Part of an erasure.
    static func erasure(of user: AppUser) -> SQL {
        """
        UPDATE registry.membership_sweep SET user_id = ''
        WHERE app = \(user.app.rawValue) AND user_id = \(user.user.rawValue)
        """
    }
}

extension HistoryStore.Place {
    fileprivate init(_ row: PostgresRow) throws(PostgresError) {
        self.init(
            app: try row.decode(String.self, at: 0), kind: try row.decode(String.self, at: 1),
            name: try row.decode(String.self, at: 2), user: try row.decode(String.self, at: 3))
    }
}
