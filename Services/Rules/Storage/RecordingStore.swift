import FoundationEssentials
import Messaging
import Postgres
import PushProtocol
import RuleEngine
import ServiceConnections
import ServiceKit

extension PostgresTransaction {
    /// Stores recordings, in the transaction of their decisions.
    func keep(_ recordings: [Recording]) async throws {
        guard !recordings.isEmpty else { return }
        try await execute(try RecordingRows.insert(recordings))
    }

    /// The events among these with the name of a user whose erasure is later than the event.
    ///
    /// - Parameter names: the names in each event.
    func eventsOfErased(_ names: [UUID: [PersonKey]], _ events: [EventCase]) async throws -> Set<UUID> {
        let people = Set(names.values.joined())
        guard !people.isEmpty else { return [] }
        let erased = try await erasures(of: people)
        let moments = Dictionary(events.map { ($0.record.key, $0.record.occurredAt) }) { first, _ in first }
        return Set(
            names.filter { key, people in
                people.contains { person in erased[person].map { moments[key, default: $0] <= $0 } ?? false }
            }.keys)
    }
}

/// Deletes recordings: after their retention, above the limit of their app, and of erased users.
struct RecordingStore: Sendable {
    /// The maximum number of rows that one statement deletes.
    static let batch = 1000

    let pool: PostgresPool

    /// Deletes a batch of recordings that are too old, too many, or of apps that do not record any more.
    ///
    /// - Returns: the number of deleted rows, and whether there may be more.
    func sweep(_ terms: [AppID: RecordingTerms], now: Timestamp) async throws -> (deleted: Int, isMore: Bool) {
        try await Outage.ofDatabase {
            var deleted = 0
            var isMore = false
            for app in try await pool.query(RecordingRows.apps).column(String.self) {
                for condition in try await conditions(AppID(rawValue: app).flatMap { terms[$0] }, app, now: now) {
                    let count = try await pool.execute(RecordingRows.delete(condition))
                    deleted += count
                    isMore = isMore || count == Self.batch
                }
            }
            return (deleted, isMore)
        }
    }

    /// The conditions of the recordings of an app to delete: all of them if it does not record.
    private func conditions(_ terms: RecordingTerms?, _ app: String, now: Timestamp) async throws(PostgresError)
        -> [SQL]
    {
        guard let terms else { return ["app = \(app)"] }
        let old: SQL = "app = \(app) AND at <= \((now - .seconds(86_400 * terms.days)).date)"
        let newestOver = try await pool.query(
            """
            SELECT at, id FROM rules.recording WHERE app = \(app) ORDER BY at DESC, id DESC
            OFFSET \(terms.limit) LIMIT 1
            """
        ).first
        guard let newestOver else { return [old] }
        let (at, id) = (try newestOver.decode(Date.self, at: 0), try newestOver.decode(Int64.self, at: 1))
        return [old, "app = \(app) AND (at, id) <= (\(at), \(id))"]
    }
}

enum RecordingRows {
    /// The apps with recordings, each found by one look into the index.
    static let apps: SQL = """
        WITH RECURSIVE app AS (
            SELECT min(app) AS name FROM rules.recording
            UNION ALL
            SELECT (SELECT min(recording.app) FROM rules.recording WHERE recording.app > app.name) FROM app
            WHERE app.name IS NOT NULL
        )
        SELECT name FROM app WHERE name IS NOT NULL
        """

    /// The recordings that name a user.
    static func naming(_ person: PersonKey) -> SQL {
        "app = \(person.app.rawValue) AND names @> \([RecordedNames.digest(person.user.rawValue, of: person.app)])"
    }

    static func delete(_ which: SQL) -> SQL {
        """
        DELETE FROM rules.recording WHERE id = ANY(ARRAY(
            SELECT id FROM rules.recording WHERE \(which) LIMIT \(RecordingStore.batch)))
        """
    }

    static func insert(_ recordings: [Recording]) throws(WireError) -> SQL {
        let bodies = try recordings.map { one throws(WireError) in try one.text() }
        // As texts, because Postgres arrays are rectangular.
        let names = recordings.map { one in
            "{\(one.names.map { "\(RecordedNames.digest($0, of: one.app))" }.joined(separator: ","))}"
        }
        return """
            INSERT INTO rules.recording (app, kind, event, rule_set, at, decisions, body, names)
            SELECT app, kind, event, rule_set, at, decisions, body::json, names::bigint[] FROM unnest(
                \(recordings.map(\.app.rawValue)), \(recordings.map(\.kind)), \(recordings.map(\.event)),
                \(recordings.map(\.ruleSet)), \(recordings.map(\.at.date)), \(recordings.map(\.count)), \(bodies),
                \(names)
            ) WITH ORDINALITY AS new (app, kind, event, rule_set, at, decisions, body, names, place) ORDER BY place
            """
    }
}
