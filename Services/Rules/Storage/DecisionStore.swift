import FoundationEssentials
import Messaging
import Postgres
import PushProtocol
import ServiceKit

/// Keeps which events were decided about, and who was to hear of them.
struct DecisionStore: Sendable {
    let pool: PostgresPool

    /// Keeps a batch: two statements, and one more when it holds an event that was seen before.
    ///
    /// - Returns: the keys of events that nothing is left to do for: each was seen before, and every notification that
    ///   was decided for it has an answer, which it can only have if it was published. An event that was seen before and
    ///   has a notification without an answer is not among them: its first delivery may have ended between this commit
    ///   and the broker's word, so it is to be published again, under the same ids.
    func keep(_ events: [EventRecord]) async throws -> Set<UUID> {
        guard !events.isEmpty else { return [] }
        return try await Outage.ofDatabase {
            try await pool.transaction { transaction in
                let new = try await transaction.query(DecisionStore.insert(events)).keys
                let seen = Set(events.map(\.key)).subtracting(new)
                let settled = seen.isEmpty ? [] : try await transaction.query(DecisionStore.settled(Array(seen))).keys
                let decided = events.filter { !settled.contains($0.key) && !$0.decisions.isEmpty }
                if !decided.isEmpty { try await transaction.execute(DecisionStore.insertDecisions(decided)) }
                return settled
            }
        }
    }

    /// In the order of the keys, so that two batches with the same events wait for each other and do not deadlock.
    private static func insert(_ events: [EventRecord]) -> SQL {
        """
        INSERT INTO rules.event (key, app, source, id, type, rule_set, arrived_at)
        SELECT * FROM unnest(
            \(events.map(\.key)), \(events.map(\.app.rawValue)), \(events.map(\.source)), \(events.map(\.id)),
            \(events.map(\.type)), \(events.map(\.ruleSet)), \(events.map(\.arrivedAt.date))
        ) AS new (key) ORDER BY key
        ON CONFLICT DO NOTHING RETURNING key
        """
    }

    private static func settled(_ keys: [UUID]) -> SQL {
        """
        SELECT key FROM rules.event WHERE key = ANY(\(keys)) AND NOT EXISTS (
            SELECT FROM rules.decision WHERE decision.event = event.key AND NOT EXISTS (
                SELECT FROM rules.outcome WHERE outcome.notification = decision.notification))
        """
    }

    private static func insertDecisions(_ events: [EventRecord]) -> SQL {
        let rows = events.flatMap { event in event.decisions.map { (event: event, decision: $0) } }
        return """
            INSERT INTO rules.decision (notification, event, rule, user_id, decided_at)
            SELECT * FROM unnest(
                \(rows.map(\.decision.notification)), \(rows.map(\.event.key)), \(rows.map(\.decision.rule)),
                \(rows.map(\.decision.user.rawValue)), \(rows.map(\.event.arrivedAt.date))
            ) AS new (notification) ORDER BY notification
            ON CONFLICT DO NOTHING
            """
    }
}

extension [PostgresRow] {
    fileprivate var keys: Set<UUID> {
        get throws(PostgresError) {
            var keys: Set<UUID> = []
            for row in self { keys.insert(try row.decode(at: 0)) }
            return keys
        }
    }
}
