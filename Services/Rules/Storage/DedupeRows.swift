import FoundationEssentials
import Postgres
import PushProtocol
import RuleEngine
import RuleLanguage

extension PostgresTransaction {
    /// Reads the active dedupe keys of the events' recipients.
    func readDedupeKeys(_ events: [EventCase], _ people: inout [PersonKey: Person], now: Timestamp) async throws {
        var wanted: [(person: PersonKey, key: String)] = []
        for event in events {
            for draft in event.drafts {
                guard let key = draft.terms.dedupe else { continue }
                wanted += draft.recipients.map { (PersonKey(app: event.record.app, user: $0.user), key) }
            }
        }
        guard !wanted.isEmpty else { return }
        let rows = try await query(
            """
            SELECT app, user_id, key, until FROM rules.told JOIN unnest(
                \(wanted.map(\.person.app.rawValue)), \(wanted.map(\.person.user.rawValue)), \(wanted.map(\.key))
            ) AS new (app, user_id, key) USING (app, user_id, key) WHERE until > \(now.date)
            """)
        for row in rows {
            let person = try PersonRows.key(row)
            people[person, default: Person()].dedupeUntil[try row.decode(String.self, at: 2)] = Timestamp(
                try row.decode(Date.self, at: 3))
        }
    }

    /// Stores dedupe keys with their end times.
    func keepDedupe(_ ends: [PersonKey: [String: Timestamp]]) async throws {
        let rows = ends.flatMap { person, keys in keys.map { (person: person, key: $0.key, until: $0.value) } }
        guard !rows.isEmpty else { return }
        try await execute(
            """
            INSERT INTO rules.told (app, user_id, key, until) SELECT * FROM unnest(
                \(rows.map(\.person.app.rawValue)), \(rows.map(\.person.user.rawValue)), \(rows.map(\.key)),
                \(rows.map(\.until.date))
            ) AS new (app, user_id, key, until) ORDER BY app, user_id, key
            ON CONFLICT (app, user_id, key) DO UPDATE SET until = EXCLUDED.until
            """)
    }
}
