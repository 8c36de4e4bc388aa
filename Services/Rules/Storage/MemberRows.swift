import FoundationEssentials
import Logging
import Postgres
import PushProtocol
import RuleEngine
import RuleLanguage

extension PostgresTransaction {
    /// Reads at most `limit` members of each group, sorted by the bytes of their user ids. A member that cannot be read
    /// is marked as dead (``DeadRow``) and left out.
    func members(
        of groups: Set<GroupKey>, atMost limit: Int, _ logger: Logger
    ) async throws -> [GroupKey: [GroupReference.Member]] {
        guard !groups.isEmpty else { return [:] }
        var members: [GroupKey: [GroupReference.Member]] = [:]
        var dead: [DeadRow] = []
        for row in try await query(MemberRows.select(groups.sorted(), limit)) {
            let key = GroupKey(app: try row.decode(AppID.self, at: 0), group: try row.decode(String.self, at: 1))
            do {
                members[key, default: []].append(try GroupReference.Member(row, at: 2))
            } catch {
                dead.append(MemberRows.dead(key, user: try row.decode(String.self, at: 2)))
            }
        }
        try await markDead(dead, logger)
        return members
    }

    /// The sum of the members of the groups, of any role.
    func numberOfMembers(in groups: Set<GroupKey>) async throws -> Int {
        guard !groups.isEmpty else { return 0 }
        return try await query(MemberRows.count(groups.sorted())).single(Int.self)
    }

    /// Reads the next members of a group, of any role. A member that cannot be read is marked as dead and left out.
    func part(
        of groupReference: GroupReference, in app: AppID, after told: String, _ logger: Logger
    ) async throws -> FanOutPage.Part {
        let key = GroupKey(app: app, group: groupReference.group)
        let rows = try await query(MemberRows.next(in: key, after: told))
        let (members, dead) = try rows.readable({ try GroupReference.Member($0, at: 0) }) {
            MemberRows.dead(key, user: try $0.decode(String.self, at: 0))
        }
        try await markDead(dead, logger)
        let end = rows.count == LargeAudience.step ? try rows.last?.decode(String.self, at: 0) : nil
        return FanOutPage.Part(groupReference: groupReference, members: members, end: end)
    }

    /// Stores membership changes. The latest event about a member counts, by the upstream's timestamp and not by
    /// arrival.
    func keepMembers(_ events: [EventCase]) async throws {
        var words: [(key: GroupKey, members: [UserID: String?], change: MembershipSource.Change, at: Timestamp)] = []
        for event in events {
            for signal in event.signals {
                guard case .membership(let group, let members, let change) = signal else { continue }
                words.append((GroupKey(app: event.record.app, group: group), members, change, event.record.occurredAt))
            }
        }
        // Sorted by group, and by event within a group, so that two batches do not deadlock.
        for (_, word) in words.enumerated().sorted(by: { ($0.element.key, $0.offset) < ($1.element.key, $1.offset) }) {
            if word.change == .members {
                try await execute(MemberRows.recordListing(word.key, at: word.at))
                try await execute(MemberRows.removeMembers(word.key, except: Array(word.members.keys), at: word.at))
            }
            guard !word.members.isEmpty else { continue }
            try await execute(
                MemberRows.upsertMembers(word.key, word.members, hasLeft: word.change == .left, at: word.at))
        }
    }
}

extension GroupReference.Member {
    /// - Parameter place: the column with the user id; the next column has the role.
    fileprivate init(_ row: PostgresRow, at place: Int) throws(PostgresError) {
        self.init(user: try row.decode(UserID.self, at: place), role: try row.decode(String?.self, at: place + 1))
    }
}

private enum MemberRows {
    static func dead(_ key: GroupKey, user: String) -> DeadRow {
        DeadRow(
            table: .member, app: key.app.rawValue, key: [key.app.rawValue, key.group, user], reason: .unreadable)
    }

    static func next(in key: GroupKey, after told: String) -> SQL {
        """
        SELECT user_id, role FROM rules.member
        WHERE app = \(key.app.rawValue) AND circle = \(key.group) AND NOT has_left AND dead_at IS NULL
            AND user_id > \(told)
        ORDER BY user_id LIMIT \(LargeAudience.step)
        """
    }

    static func select(_ groups: [GroupKey], _ limit: Int) -> SQL {
        """
        SELECT new.app, new.circle, member.user_id, member.role
        FROM unnest(\(groups.map(\.app.rawValue)), \(groups.map(\.group))) AS new (app, circle), LATERAL (
            SELECT user_id, role FROM rules.member
            WHERE member.app = new.app AND member.circle = new.circle AND NOT has_left
                AND dead_at IS NULL
            ORDER BY user_id LIMIT \(limit)
        ) AS member ORDER BY new.app, new.circle, member.user_id
        """
    }

    static func count(_ groups: [GroupKey]) -> SQL {
        """
        SELECT count(*) FROM rules.member
            JOIN unnest(\(groups.map(\.app.rawValue)), \(groups.map(\.group))) AS new (app, circle) USING (app, circle)
        WHERE NOT has_left AND dead_at IS NULL
        """
    }

    static func recordListing(_ key: GroupKey, at moment: Timestamp) -> SQL {
        """
        INSERT INTO rules.circle (app, circle, told_at) VALUES (\(key.app.rawValue), \(key.group), \(moment.date))
        ON CONFLICT (app, circle) DO UPDATE SET told_at = greatest(circle.told_at, EXCLUDED.told_at)
        """
    }

    static func removeMembers(_ key: GroupKey, except users: [UserID], at moment: Timestamp) -> SQL {
        """
        UPDATE rules.member SET has_left = true, at = \(moment.date)
        WHERE app = \(key.app.rawValue) AND circle = \(key.group) AND NOT has_left AND at <= \(moment.date)
            AND NOT user_id = ANY(\(users.map(\.rawValue)))
        """
    }

    static func upsertMembers(_ key: GroupKey, _ members: [UserID: String?], hasLeft: Bool, at moment: Timestamp) -> SQL
    {
        let users = members.keys.map(\.rawValue)
        let roles = members.values.map { hasLeft ? nil : $0 }
        return """
            INSERT INTO rules.member (app, circle, user_id, role, has_left, at)
            SELECT \(key.app.rawValue), \(key.group), user_id, role, \(hasLeft), \(moment.date)
            FROM unnest(\(users), \(roles)) AS new (user_id, role)
            WHERE NOT EXISTS (SELECT FROM rules.circle WHERE app = \(key.app.rawValue) AND circle = \(key.group)
                AND told_at > \(moment.date))
            ORDER BY user_id
            ON CONFLICT (app, circle, user_id) DO UPDATE
                SET role = EXCLUDED.role, has_left = EXCLUDED.has_left, at = EXCLUDED.at, dead_at = NULL,
                    dead_reason = NULL
                WHERE member.at <= EXCLUDED.at
            """
    }
}
