import FoundationEssentials
import Postgres
import PushProtocol

/// Who belongs to which topics and tags. Of two words about one user and group the later counts.
struct MembershipStore: Sendable {
    /// The most groups that a user may be in, in one app.
    static let mostGroups = 1000
    /// And the most of which anything is known, those included that the user has left: they are kept for a while.
    static let mostRemembered = 10_000

    private let database: PostgresPool

    init(_ database: PostgresPool) { self.database = database }

    /// One change in one app.
    struct Change: Hashable, Sendable {
        var app: AppID
        var change: MembershipChange
    }

    /// Carries out changes, in one statement. A change from before an erasure of its user, or from before a later one, is
    /// void; so is joining more groups than ``mostGroups``, or another than the ``mostRemembered``.
    ///
    /// - Returns: how many were carried out.
    @discardableResult
    func apply(_ changes: [Change]) async throws -> Int {
        guard !changes.isEmpty else { return 0 }
        return try await database.transaction { transaction in
            // Nobody joins whom an erasure forgets meanwhile.
            try await transaction.execute(
                AdvisoryLock.take(Set(changes.map { AdvisoryLock.user($0.app, $0.change.user) })))
            return try await transaction.execute(Self.upsert(changes))
        }
    }

    /// Of several changes to one membership in `changes` the latest counts, of those the last.
    static func upsert(_ changes: [Change]) -> SQL {
        let rows = changes.map(\.change)
        return """
            INSERT INTO registry.membership AS m (app, kind, name, user_id, active, at)
            SELECT DISTINCT ON (c.app, c.kind, c.name, c.user_id) c.app, c.kind, c.name, c.user_id, c.joins, t.at
            FROM unnest(
                \(changes.map(\.app.rawValue))::text[], \(rows.map(\.group.kind))::text[],
                \(rows.map(\.group.name.rawValue))::text[], \(rows.map(\.user.rawValue))::text[],
                \(rows.map(\.joins))::boolean[], \(rows.map(\.at?.date))::timestamptz[]
            ) WITH ORDINALITY AS c (app, kind, name, user_id, joins, at, n)
            CROSS JOIN LATERAL (SELECT least(coalesce(c.at, statement_timestamp()), statement_timestamp()) AS at) AS t
            LEFT JOIN registry.erasure e ON e.app = c.app AND e.user_id = c.user_id
            WHERE (e.erased_at IS NULL OR t.at > e.erased_at)
                AND (NOT c.joins OR (
                    SELECT count(*) FILTER (WHERE o.active) < \(mostGroups) AND count(*) < \(mostRemembered)
                    FROM registry.membership o
                    WHERE o.app = c.app AND o.user_id = c.user_id AND (o.kind, o.name) <> (c.kind, c.name)
                ))
            ORDER BY c.app, c.kind, c.name, c.user_id, t.at DESC, c.n DESC
            ON CONFLICT (app, kind, name, user_id) DO UPDATE SET active = excluded.active, at = excluded.at
            WHERE m.at <= excluded.at
            """
    }

    /// The topics that a user subscribes to, in their order.
    func topics(of user: AppUser) async throws(PostgresError) -> [GroupName] {
        var topics: [GroupName] = []
        for row in try await database.query(Self.list(of: user)) {
            topics.append(try row.decode(GroupName.self, at: 0))
        }
        return topics
    }

    static func list(of user: AppUser) -> SQL {
        """
        SELECT name FROM registry.membership
        WHERE app = \(user.app.rawValue) AND user_id = \(user.user.rawValue) AND kind = 'topic' AND active
        ORDER BY name
        """
    }

    /// Forgets what groups a user was in at a moment; part of an erasure.
    static func erasure(of user: AppUser, at moment: Date) -> SQL {
        """
        DELETE FROM registry.membership
        WHERE app = \(user.app.rawValue) AND user_id = \(user.user.rawValue) AND at <= \(moment)
        """
    }
}

extension GroupName: PostgresValue {}

extension UserGroup {
    /// The word of the column `kind`.
    var kind: String {
        switch self {
        case .topic: "topic"
        case .tag: "tag"
        }
    }
}
