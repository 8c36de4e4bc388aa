import FoundationEssentials
import Postgres
import PushProtocol

/// What is kept for a time only besides registrations: memberships that were left, found by walking through all of them
/// (an index on their time would be rewritten by everyone who subscribes again); campaigns, by when they finished; imports.
struct HistoryStore: Sendable {
    /// The most memberships that one step looks at, and the most campaigns that go at once.
    static let usualStep = 1000

    private let database: PostgresPool
    private let terms: RetentionTerms
    private let step: Int

    init(_ database: PostgresPool, terms: RetentionTerms = .usual, step: Int = usualStep) {
        self.database = database
        self.terms = terms
        self.step = step
    }

    /// What a step came to.
    enum Progress: Hashable, Sendable {
        /// Another process is at it.
        case elsewhere
        /// So many memberships were deleted, and there are more to be looked at.
        case more(memberships: Int)
        /// So many, all have been looked at, and records after them: the next step begins anew.
        case finished(memberships: Int, Records)
    }

    /// How many records were deleted, and which campaigns have expired since they stood still.
    struct Records: Hashable, Sendable {
        var campaigns = 0
        var imports = 0
        var expired: [UUID] = []
    }

    /// A membership, in the order of the table's primary key; empty: before all of them.
    struct Place: Hashable, Sendable {
        var app = ""
        var kind = ""
        var name = ""
        var user = ""
    }

    /// Looks at the next memberships as of `now`, and after the last of them at the records.
    func advance(now: Timestamp) async throws -> Progress {
        try await database.transaction { transaction in
            let turn = try await transaction.query(
                "SELECT app, kind, name, user_id FROM registry.membership_sweep FOR UPDATE SKIP LOCKED")
            guard let place = try turn.first.map(Place.init) else { return .elsewhere }
            let end = try await transaction.query(Self.end(of: step, after: place)).first.map(Place.init)
            try await transaction.execute(Self.bearings)
            let memberships = try await transaction.execute(
                Self.deletion(after: place, until: end, before: (now - terms.ended).date))
            let next = end ?? Place()
            try await transaction.execute(
                """
                UPDATE registry.membership_sweep
                SET app = \(next.app), kind = \(next.kind), name = \(next.name), user_id = \(next.user)
                """)
            guard end == nil else { return .more(memberships: memberships) }
            return .finished(memberships: memberships, try await clearRecords(now: now, in: transaction))
        }
    }

    private func clearRecords(now: Timestamp, in transaction: PostgresTransaction) async throws -> Records {
        let before = (now - terms.records).date
        var records = Records()
        for row in try await transaction.query(Self.expiry(before: before)) {
            records.expired.append(try row.decode(UUID.self, at: 0))
        }
        var finished: [UUID] = []
        for row in try await transaction.query(Self.finished(before: before, limit: step)) {
            finished.append(try row.decode(UUID.self, at: 0))
        }
        if !finished.isEmpty {
            records.campaigns = try await transaction.query(
                "SELECT registry.forget_campaigns(\(finished)::uuid[])"
            ).single(Int.self)
        }
        records.imports = try await transaction.query("SELECT registry.forget_imports(\(before))").single(Int.self)
        return records
    }

    /// The last membership of a step; no row when the table ends before it.
    static func end(of step: Int, after place: Place) -> SQL {
        """
        SELECT m.app, m.kind, m.name, m.user_id FROM registry.membership m WHERE \(isBehind(place))
        ORDER BY m.app, m.kind, m.name, m.user_id OFFSET \(step - 1) LIMIT 1
        """
    }

    /// Of a comparison of rows the planner estimates the first column only, takes a step for the whole table where most of
    /// it is one app's, and would read all of it.
    static let bearings: SQL = "SET LOCAL enable_seqscan = off"

    /// What was left before a moment. What somebody is writing right now stays until the next time; nobody is waited for,
    /// and who has joined again meanwhile stays.
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

    /// Ends what stands still: parts of its list never came, or it was paused and forgotten. While it is unfinished it
    /// keeps its list, and registrations that were replaced since it began.
    static func expiry(before: Date) -> SQL {
        """
        UPDATE registry.campaign c SET state = 'expired', finished_at = clock_timestamp()
        WHERE c.finished_at IS NULL AND c.created_at < \(before) AND c.next_at < \(before)
            AND NOT EXISTS (
                SELECT FROM registry.campaign_range g WHERE g.campaign = c.id AND g.lease_until >= \(before))
        RETURNING c.id
        """
    }

    /// The campaigns that finished before a moment, the oldest first.
    static func finished(before: Date, limit: Int) -> SQL {
        """
        SELECT c.id FROM registry.campaign c WHERE c.finished_at < \(before)
        ORDER BY c.finished_at LIMIT \(limit) FOR UPDATE SKIP LOCKED
        """
    }

    /// Takes a user out of the place that the walk has come to; part of an erasure.
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
