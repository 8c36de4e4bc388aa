import FoundationEssentials
import Postgres
import PushProtocol
import RuleEngine
import RuleLanguage

extension PostgresTransaction {
    /// Writes the effects of a batch of decisions.
    ///
    /// - Parameter people: the users with their digest times and time zones.
    func keep(_ writes: DecisionWrites, _ people: [PersonKey: Person], now: Timestamp) async throws {
        if !writes.isEmpty { try await execute(writes.sql()) }
        try await keepReplacements(writes, now: now)
        try await keepDedupe(writes.dedupeUntil)
        try await gather(writes.gathered, people, now: now)
    }

    /// Puts gathered notifications into buckets, and plans when the buckets close.
    private func gather(
        _ gathered: [DecisionWrites.Gathered], _ people: [PersonKey: Person], now: Timestamp
    ) async throws {
        // Only the latest notification about an item counts, also within a batch.
        var items: [BucketKey: [String: DecisionWrites.Gathered]] = [:]
        for one in gathered {
            if let other = items[one.key]?[one.item.name], other.item.saidAt > one.item.saidAt { continue }
            items[one.key, default: [:]][one.item.name] = one
        }
        guard !items.isEmpty else { return }
        let keys = items.keys.sorted()
        var last: [BucketKey: DigestTime.Occurrence] = [:]
        for row in try await query(
            DigestEntryRows.open(keys, rules: keys.map { items[$0]?.values.first?.rule ?? "" }, now))
        {
            let person = try PersonRows.key(row)
            guard let day = try row.decode(Int32?.self, at: 3), let at = try row.decode(Date?.self, at: 4) else {
                continue
            }
            last[BucketKey(person: person, bucket: try row.decode(String.self, at: 2))] = DigestTime.Occurrence(
                date: LocalDate(dayNumber: Int(day)), at: Timestamp(at))
        }
        try await execute(DigestEntryRows.insert(items.values.flatMap(\.values)))
        var plans: [DigestEntryRows.Plan] = []
        for key in keys {
            guard let first = items[key]?.values.min(by: { $0.item.from < $1.item.from }) else { continue }
            let settings = people[key.person]?.settings ?? PersonalSettings()
            let occasion = first.digest.closing(
                after: first.item.from, settings: settings, zone: first.zone, last: last[key])
            plans.append(
                DigestEntryRows.Plan(
                    key: key, closeAt: occasion.at, plannedAt: first.item.from, count: first.digest.count))
        }
        try await execute(DigestEntryRows.plan(plans, now))
    }
}

enum DigestEntryRows {
    struct Plan {
        var key: BucketKey
        var closeAt: Timestamp
        var plannedAt: Timestamp
        /// The number of items at which the bucket closes early.
        var count: Int?
    }

    /// Creates missing buckets, and locks all until the transaction ends.
    fileprivate static func open(_ keys: [BucketKey], rules: [String], _ now: Timestamp) -> SQL {
        """
        INSERT INTO rules.digest (app, user_id, bucket, rule, planned_at)
        SELECT app, user_id, bucket, rule, \(now.date) FROM unnest(
            \(keys.map(\.person.app.rawValue)), \(keys.map(\.person.user.rawValue)), \(keys.map(\.bucket)), \(rules)
        ) AS new (app, user_id, bucket, rule) ORDER BY app COLLATE "C", user_id COLLATE "C", bucket COLLATE "C"
        ON CONFLICT (app, user_id, bucket) DO UPDATE SET rule = EXCLUDED.rule
        RETURNING app, user_id, bucket, last_day, last_at
        """
    }

    /// Inserts items. A later notification replaces an earlier one about the same item, and counts as new.
    fileprivate static func insert(_ gathered: [DecisionWrites.Gathered]) throws(WireError) -> SQL {
        let (keys, items) = (gathered.map(\.key), gathered.map(\.item))
        let values = try items.map { item throws(WireError) in try WireCoding.text(item.values) }
        return """
            INSERT INTO rules.digest_item
                (app, user_id, bucket, item, notification, event, correlation, details, said_at, from_at, end_at)
            SELECT app, user_id, bucket, item, notification, event, correlation, details::json, said_at, from_at, end_at
            FROM unnest(
                \(keys.map(\.person.app.rawValue)), \(keys.map(\.person.user.rawValue)), \(keys.map(\.bucket)),
                \(items.map(\.name)), \(items.map(\.notification)), \(items.map(\.event)), \(items.map(\.correlation)),
                \(values), \(items.map(\.saidAt.date)), \(items.map(\.from.date)), \(items.map(\.end?.date))
            ) AS new (app, user_id, bucket, item, notification, event, correlation, details, said_at, from_at, end_at)
            ORDER BY app, user_id, bucket, item
            ON CONFLICT (app, user_id, bucket, item) DO UPDATE SET
                notification = EXCLUDED.notification, event = EXCLUDED.event, correlation = EXCLUDED.correlation,
                details = EXCLUDED.details, said_at = EXCLUDED.said_at, from_at = EXCLUDED.from_at,
                end_at = EXCLUDED.end_at, is_told = false, dead_at = NULL, dead_reason = NULL
                WHERE digest_item.said_at <= EXCLUDED.said_at
            """
    }

    /// Plans when buckets close: at the earliest time of their items, or immediately if full.
    fileprivate static func plan(_ plans: [Plan], _ now: Timestamp) -> SQL {
        """
        UPDATE rules.digest SET
            planned_at = CASE WHEN digest.close_at <= new.close_at THEN digest.planned_at ELSE new.planned_at END,
            close_at = CASE WHEN new.count <= (
                SELECT count(*) FROM rules.digest_item
                WHERE (digest_item.app, digest_item.user_id, digest_item.bucket) = (new.app, new.user_id, new.bucket)
                    AND NOT is_told AND dead_at IS NULL AND from_at <= \(now.date)
            ) THEN '-infinity' ELSE least(digest.close_at, new.close_at) END
        FROM unnest(
            \(plans.map(\.key.person.app.rawValue)), \(plans.map(\.key.person.user.rawValue)),
            \(plans.map(\.key.bucket)), \(plans.map(\.closeAt.date)), \(plans.map(\.plannedAt.date)),
            \(plans.map(\.count))
        ) AS new (app, user_id, bucket, close_at, planned_at, count)
        WHERE (digest.app, digest.user_id, digest.bucket) = (new.app, new.user_id, new.bucket)
        """
    }
}
