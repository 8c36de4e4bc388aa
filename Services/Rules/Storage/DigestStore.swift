import FoundationEssentials
import Logging
import Messaging
import Postgres
import PushProtocol
import RuleEngine
import RuleLanguage
import ServiceConnections

struct DigestStore: Sendable {
    /// The maximum number of buckets that one call closes.
    static let batch = 200

    let pool: PostgresPool
    var logger = Logger.rules
    /// The apps whose decisions are recorded.
    var recordedApps: @Sendable () -> Set<AppID> = { [] }

    /// A digest that could not be rendered. Its items are gone.
    struct Failure: Sendable {
        var app: AppID
        /// The lost items, the oldest first.
        var items: [Bucket.Item]
        var error: RenderError
    }

    /// Closes the due buckets. Each digest becomes a held notification that is due now.
    ///
    /// Any number of processes may run it. A bucket or an item that cannot be read, or a bucket that cannot be closed,
    /// is marked as dead (``DeadRow``) and does not block the others.
    ///
    /// - Returns: the number of buckets processed, and the failures.
    func close(by ruleSets: RuleSets, now: Timestamp) async throws -> (taken: Int, failures: [Failure]) {
        let due = DigestRows.due(now)
        let parts = try await Outage.ofDatabase {
            try await isolatingRows(
                pool, logger, batch: { try await close(due, by: ruleSets, now: now) },
                keys: { try await pool.query(DigestRows.keys(due)).map { try DigestRows.names($0) } },
                alone: { names in try await close(DigestRows.due(now, only: names), by: ruleSets, now: now) },
                dead: { DeadRow(table: .digest, app: $0[0], key: $0, reason: .failed) })
        }
        return (parts.reduce(0) { $0 + $1.taken }, parts.flatMap(\.failures))
    }

    private func close(
        _ which: SQL, by ruleSets: RuleSets, now: Timestamp
    ) async throws -> (taken: Int, failures: [Failure]) {
        try await pool.transaction { transaction in
            let rows = try await transaction.query(DigestRows.select(which))
            let oldest = try rows.first.map { row throws(PostgresError) in
                Timestamp(try row.decode(Date.self, at: 7))
            }
            DueAge.digest.record(oldest: oldest, now: now)
            let (read, dead) = try rows.readable({ try DueBucket($0) }) { row in
                let names = try DigestRows.names(row)
                return DeadRow(table: .digest, app: names[0], key: names, reason: .unreadable)
            }
            var buckets = read
            try await transaction.markDead(dead, logger)
            guard !buckets.isEmpty else { return (rows.count, []) }
            let keys = buckets.map(\.key)
            let items = try await items(of: keys, transaction)
            let people = try await transaction.people(
                settingsOf: keys.map(\.person), capsOf: [], presenceOf: [], now: now, logger)
            var writes = DecisionWrites(decidedAt: now)
            var failures: [Failure] = []
            var recorder = DecisionRecorder(recordedApps(), now: now)
            for index in buckets.indices {
                buckets[index].bucket.items = items[buckets[index].key] ?? []
                let settings = people[buckets[index].key.person]?.settings ?? PersonalSettings()
                let row = buckets[index]
                let before = writes.decisions.count
                defer { recorder.add(row, writes.decisions[before...], settings) }
                do throws(RenderError) {
                    try buckets[index].close(by: ruleSets, settings, &writes, now: now)
                } catch {
                    let items = buckets[index].bucket.items.sorted { $0.saidAt < $1.saidAt }
                    failures.append(Failure(app: buckets[index].key.person.app, items: items, error: error))
                }
            }
            if !writes.isEmpty { try await transaction.execute(writes.sql()) }
            try await transaction.keep(recorder.recordings)
            try await transaction.execute(DigestRows.remove(buckets))
            try await transaction.execute(DigestRows.markTold(buckets))
            try await transaction.execute(DigestRows.update(buckets))
            return (rows.count, failures)
        }
    }

    private func items(
        of keys: [BucketKey], _ transaction: PostgresTransaction
    ) async throws -> [BucketKey: [Bucket.Item]] {
        let rows = try await transaction.query(DigestRows.items(keys))
        let (items, dead) = try rows.readable({ (key: try DigestRows.key($0), item: try Bucket.Item($0)) }) { row in
            let names = try DigestRows.names(row) + [try row.decode(String.self, at: 3)]
            return DeadRow(table: .digestItem, app: names[0], key: names, reason: .unreadable)
        }
        try await transaction.markDead(dead, logger)
        return Dictionary(grouping: items, by: \.key).mapValues { $0.map(\.item) }
    }
}

extension Bucket.Item {
    /// - Parameter row: of ``DigestRows/items(_:)``.
    fileprivate init(_ row: PostgresRow) throws {
        self.init(
            name: try row.decode(String.self, at: 3), notification: try row.decode(UUID.self, at: 4),
            event: try row.decode(UUID.self, at: 5), correlation: try row.decode(String.self, at: 6),
            values: try WireCoding.decodeStored(JSONValue.self, from: try row.decode(String.self, at: 7)),
            saidAt: Timestamp(try row.decode(Date.self, at: 8)), from: Timestamp(try row.decode(Date.self, at: 9)),
            end: try row.decode(Date?.self, at: 10).map(Timestamp.init), wasSent: try row.decode(Bool.self, at: 11),
            step: Int(try row.decode(Int32.self, at: 12)))
    }
}

extension DueBucket {
    init(_ row: PostgresRow) throws {
        var last: DigestTime.Occurrence?
        if let day = try row.decode(Int32?.self, at: 5), let at = try row.decode(Date?.self, at: 6) {
            last = DigestTime.Occurrence(date: LocalDate(dayNumber: Int(day)), at: Timestamp(at))
        }
        self.init(
            key: try DigestRows.key(row), rule: try row.decode(String.self, at: 3),
            bucket: Bucket(plannedAt: Timestamp(try row.decode(Date.self, at: 4)), last: last, items: []))
    }
}
