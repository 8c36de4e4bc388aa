package import Postgres
package import PushProtocol
import FoundationEssentials

/// Stores the members of topics and tags. The change with the latest time wins.
package struct MembershipStore: Sendable {
    /// Maximum groups of a user in one app.
    package static let mostGroups = 1000
    /// Maximum stored memberships of a user in one app, including those that ended and are still kept.
    package static let mostRemembered = 10_000

    private let database: PostgresPool

    package init(_ database: PostgresPool) { self.database = database }

    package struct Change: Hashable, Sendable {
        package var app: AppID
        package var change: MembershipChange

        package init(app: AppID, change: MembershipChange) {
            self.app = app
            self.change = change
        }
    }

    /// Applies changes in one statement. Ignores a change older than an erasure of its user or than a later change, and
    /// joins beyond ``mostGroups`` or ``mostRemembered``.
    ///
    /// - Returns: the number of applied changes.
    @discardableResult
    package func apply(_ changes: [Change]) async throws -> Int {
        guard !changes.isEmpty else { return 0 }
        return try await database.transaction { transaction in
            // Serialises joining with an erasure of the same user.
            try await transaction.execute(
                AdvisoryLock.take(Set(changes.map { AdvisoryLock.user($0.app, $0.change.user) })))
            return try await transaction.execute(Self.upsert(changes))
        }
    }

    /// Upserts memberships. Of several changes to one membership, the latest wins; at equal times the last in
    /// `changes`.
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

    /// Reads the topics that a user subscribes to, sorted.
    package func topics(of user: AppUser) async throws(PostgresError) -> [GroupName] {
        try await database.query(Self.list(of: user)).column(GroupName.self)
    }

    static func list(of user: AppUser) -> SQL {
        """
        SELECT name FROM registry.membership
        WHERE app = \(user.app.rawValue) AND user_id = \(user.user.rawValue) AND kind = 'topic' AND active
        ORDER BY name
        """
    }

    /// Deletes a user's memberships changed up to a moment. Part of an erasure.
    static func erasure(of user: AppUser, at moment: Date) -> SQL {
        """
        DELETE FROM registry.membership
        WHERE app = \(user.app.rawValue) AND user_id = \(user.user.rawValue) AND at <= \(moment)
        """
    }
}

extension GroupName: PostgresValue {}

extension UserGroup {
    /// The value of column `kind`.
    var kind: String {
        switch self {
        case .topic: "topic"
        case .tag: "tag"
        }
    }
}
