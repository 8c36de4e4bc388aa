import FoundationEssentials
import Postgres
import PushProtocol
import RuleEngine

extension PostgresTransaction {
    /// Stores fan-outs, in the transaction that decides the rest of their event.
    func open(_ largeAudiences: [LargeAudience]) async throws {
        for largeAudience in largeAudiences.sorted(by: { ($0.key, $0.rule) < ($1.key, $1.rule) }) {
            try await execute(try FanOutRows.insert(largeAudience))
        }
    }

    /// The rules of these events that have a fan-out, running or finished.
    func largeAudiences(of events: Set<UUID>) async throws -> [UUID: Set<String>] {
        var rules: [UUID: Set<String>] = [:]
        for row in try await query("SELECT event, rule FROM rules.crowd WHERE event = ANY(\(Array(events)))") {
            rules[try row.decode(UUID.self, at: 0), default: []].insert(try row.decode(String.self, at: 1))
        }
        return rules
    }

    /// Whether a revocation covers all recipients of a fan-out: one of its event, or of its item.
    func isRevoked(_ largeAudience: LargeAudience) async throws -> Bool {
        try await query(
            """
            SELECT EXISTS (
                SELECT FROM rules.revocation JOIN rules.event
                    ON event.app = revocation.app AND event.id = revocation.event_id
                WHERE event.key = \(largeAudience.key) AND revocation.user_id IS NULL
            ) OR EXISTS (
                SELECT FROM rules.revocation JOIN rules.event_item AS about
                    ON about.app = revocation.app AND about.item = revocation.item
                        AND about.occurred_at <= revocation.until_at
                WHERE about.event = \(largeAudience.key) AND about.rule = \(largeAudience.rule)
                    AND revocation.user_id IS NULL
            )
            """
        ).single()
    }

    /// The decisions of a step whose publication is not confirmed.
    func decided(of largeAudience: LargeAudience, upTo decided: String) async throws -> [(
        user: UserID, id: UUID, RuleDecision.Answer
    )] {
        try await query(FanOutRows.decisions(largeAudience, upTo: decided)).compactMap { row in
            let until = try row.decode(Date?.self, at: 3).map(Timestamp.init)
            guard let answer = RuleDecision.Answer(word: try row.decode(String.self, at: 2), until: until) else {
                return nil
            }
            return (try row.decode(UserID.self, at: 0), try row.decode(UUID.self, at: 1), answer)
        }
    }

    /// Stores the progress of a fan-out.
    ///
    /// - Parameter due: when a process continues it.
    func move(_ largeAudience: LargeAudience, due: Timestamp) async throws {
        try await execute(
            """
            UPDATE rules.crowd SET told = \(largeAudience.confirmedUpTo), decided = \(largeAudience.decidedUpTo), due_at = \(due.date)
            WHERE event = \(largeAudience.key) AND rule = \(largeAudience.rule)
            """)
    }

    /// Marks a fan-out as finished. The row stays, because the event may arrive again; the event's body is deleted.
    func end(_ largeAudience: LargeAudience, now: Timestamp) async throws {
        try await execute(
            """
            UPDATE rules.crowd SET body = NULL, circles = NULL, told = '', decided = NULL, due_at = NULL,
                ended_at = \(now.date)
            WHERE event = \(largeAudience.key) AND rule = \(largeAudience.rule)
            """)
    }
}

enum FanOutRows {
    fileprivate static func insert(_ largeAudience: LargeAudience) throws -> SQL {
        let body = try WireCoding.text(StoredEvent(largeAudience.event))
        return """
            INSERT INTO rules.crowd (event, rule, body, arrived_at, named, circles, due_at)
            VALUES (
                \(largeAudience.key), \(largeAudience.rule), \(body)::json, \(largeAudience.arrivedAt.date), \(largeAudience.named),
                \(largeAudience.groupReferences.sorted()), '-infinity')
            ON CONFLICT DO NOTHING
            """
    }

    struct Key: Hashable, Sendable {
        var event: UUID
        var rule: String

        func dead(_ reason: DeadRow.Reason, app: String? = nil) -> DeadRow {
            DeadRow(table: .largeAudience, app: app, key: [event.uuidString.lowercased(), rule], reason: reason)
        }
    }

    /// A `WHERE` clause for the due fan-outs.
    static func due(_ now: Timestamp) -> SQL { "WHERE due_at <= \(now.date) AND dead_at IS NULL" }

    /// The same for one fan-out, if it is due.
    static func due(_ now: Timestamp, only key: Key) -> SQL {
        "\(due(now)) AND event = \(key.event) AND rule = \(key.rule)"
    }

    /// Selects the fan-out that is due longest, and locks it until the transaction ends.
    static func select(_ which: SQL) -> SQL {
        """
        SELECT body::text, rule, arrived_at, told, decided, event, body ->> 'app' FROM rules.crowd
        \(which) ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED
        """
    }

    /// The keys of fan-outs, the longest due first.
    static func keys(_ which: SQL) -> SQL { "SELECT event, rule FROM rules.crowd \(which) ORDER BY due_at LIMIT 100" }

    static func key(_ row: PostgresRow) throws(PostgresError) -> Key {
        Key(event: try row.decode(at: 0), rule: try row.decode(at: 1))
    }

    /// - Parameter row: of ``select(_:)``.
    static func dead(_ row: PostgresRow) throws(PostgresError) -> DeadRow {
        Key(event: try row.decode(at: 5), rule: try row.decode(at: 1)).dead(
            .unreadable, app: try row.decode(String?.self, at: 6))
    }

    fileprivate static func decisions(_ largeAudience: LargeAudience, upTo decided: String) -> SQL {
        """
        SELECT user_id, notification, answer, until FROM rules.decision
        WHERE event = \(largeAudience.key) AND rule = \(largeAudience.rule) AND step = 0
            AND user_id COLLATE "C" > \(largeAudience.confirmedUpTo) AND user_id COLLATE "C" <= \(decided)
        ORDER BY user_id COLLATE "C"
        """
    }
}

extension LargeAudience {
    /// - Parameter row: of ``FanOutRows/select(_:)``.
    init(_ row: PostgresRow) throws {
        self.init(
            event: try WireCoding.decodeStored(StoredEvent.self, from: row.decode(String.self, at: 0)).event,
            rule: try row.decode(String.self, at: 1), arrivedAt: Timestamp(try row.decode(Date.self, at: 2)),
            confirmedUpTo: try row.decode(String.self, at: 3), decidedUpTo: try row.decode(String?.self, at: 4))
    }

    var key: UUID { EventRecord.key(of: event) }
}
