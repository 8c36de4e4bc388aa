import FoundationEssentials
import Logging
import Postgres
import PushProtocol
import RuleEngine

extension PostgresTransaction {
    /// Reads the settings, cap histories and presence of users.
    ///
    /// Creates missing rows of `charged` users and locks them until the transaction ends, so that two decisions never
    /// use the same free place under a cap. Locks in byte order, so that two batches with the same users wait for each
    /// other and do not deadlock.
    ///
    /// Settings that can be read only in part do not fail. The readable part applies, and the row is marked
    /// (``DeadRow``).
    ///
    /// - Parameters:
    ///   - asked: the users whose settings matter.
    ///   - charged: the users whose caps a push may charge.
    ///   - watched: the users whose presence matters.
    func people(
        settingsOf asked: [PersonKey], capsOf charged: [PersonKey], presenceOf watched: [PersonKey], now: Timestamp,
        _ logger: Logger
    ) async throws -> [PersonKey: Person] {
        var people: [PersonKey: Person] = [:]
        var dead: [DeadRow] = []
        let charged = Set(charged)
        let others = Set(asked).subtracting(charged)
        if !charged.isEmpty {
            let keys = charged.sorted()
            try await execute(PersonRows.make(keys))
            for row in try await query(PersonRows.select(keys, lock: true)) {
                try PersonRows.read(row, into: &people, &dead)
            }
        }
        if !others.isEmpty {
            for row in try await query(PersonRows.select(others.sorted(), lock: false)) {
                try PersonRows.read(row, into: &people, &dead)
            }
        }
        try await markDead(dead, logger)
        if !watched.isEmpty {
            for row in try await query(PersonRows.leases(Set(watched).sorted(), now: now)) {
                let lease = Person.Lease(
                    viewing: try row.decode(String?.self, at: 2),
                    expiresAt: Timestamp(try row.decode(Date.self, at: 3)))
                people[try PersonRows.key(row), default: Person()].leases.append(lease)
            }
        }
        return people
    }
}

/// Statements on `rules.person` and `rules.presence`.
enum PersonRows {
    fileprivate static func make(_ keys: [PersonKey]) -> SQL {
        """
        INSERT INTO rules.person (app, user_id) SELECT * FROM \(table(keys)) ORDER BY app COLLATE "C", user_id COLLATE "C"
        ON CONFLICT DO NOTHING
        """
    }

    fileprivate static func select(_ keys: [PersonKey], lock: Bool) -> SQL {
        let lock: SQL = lock ? #"ORDER BY app COLLATE "C", user_id COLLATE "C" FOR UPDATE OF person"# : ""
        return """
            SELECT app, user_id, settings, logs FROM rules.person JOIN \(table(keys)) USING (app, user_id) \(lock)
            """
    }

    fileprivate static func leases(_ keys: [PersonKey], now: Timestamp) -> SQL {
        """
        SELECT app, user_id, viewing, expires_at FROM rules.presence JOIN \(table(keys)) USING (app, user_id)
        WHERE expires_at > \(now.date)
        """
    }

    static func table(_ keys: [PersonKey]) -> SQL {
        "unnest(\(keys.map(\.app.rawValue)), \(keys.map(\.user.rawValue))) AS new (app, user_id)"
    }

    /// Reads `app` and `user_id` from the first columns of a row.
    static func key(_ row: PostgresRow) throws(PostgresError) -> PersonKey {
        PersonKey(app: try row.decode(AppID.self, at: 0), user: try row.decode(UserID.self, at: 1))
    }

    fileprivate static func read(
        _ row: PostgresRow, into people: inout [PersonKey: Person], _ dead: inout [DeadRow]
    ) throws(PostgresError) {
        let key = try key(row)
        let settings = PersonalSettings.stored(try row.decode(JSONB.self, at: 2).text)
        let capHistory = try? WireCoding.decodeStored(
            [String: [Timestamp]].self, from: try row.decode(JSONB.self, at: 3).text)
        people[key] = Person(settings: settings.value, capHistory: capHistory ?? [:])
        if !settings.isWhole || capHistory == nil { dead.append(PersonRows.dead(key)) }
    }

    static func dead(_ key: PersonKey) -> DeadRow {
        DeadRow(
            table: .person, app: key.app.rawValue, key: [key.app.rawValue, key.user.rawValue], reason: .unreadable)
    }
}
