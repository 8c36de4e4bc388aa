import FoundationEssentials
import Postgres
import PushProtocol
import RuleEngine
import RuleLanguage

/// Statements on `rules.digest` and `rules.digest_item` that close buckets.
enum DigestRows {
    /// A `WHERE` clause for the first ``DigestStore/batch`` due buckets.
    static func due(_ now: Timestamp) -> SQL {
        "WHERE close_at <= \(now.date) AND dead_at IS NULL ORDER BY close_at LIMIT \(DigestStore.batch)"
    }

    /// The same for one bucket, if it is due.
    static func due(_ now: Timestamp, only names: [String]) -> SQL {
        """
        WHERE close_at <= \(now.date) AND dead_at IS NULL
            AND app = \(names[0]) AND user_id = \(names[1]) AND bucket = \(names[2])
        """
    }

    static func select(_ which: SQL) -> SQL {
        """
        SELECT app, user_id, bucket, rule, planned_at, last_day, last_at, close_at FROM rules.digest \(which)
        FOR UPDATE SKIP LOCKED
        """
    }

    /// The keys of buckets, which ``names(_:)`` reads.
    static func keys(_ which: SQL) -> SQL { "SELECT app, user_id, bucket FROM rules.digest \(which)" }

    /// App, user and bucket of a row, unvalidated.
    static func names(_ row: PostgresRow) throws(PostgresError) -> [String] {
        [try row.decode(at: 0), try row.decode(at: 1), try row.decode(at: 2)]
    }

    static func items(_ keys: [BucketKey]) -> SQL {
        """
        SELECT app, user_id, bucket, item, notification, event, correlation, details::text, said_at, from_at, end_at, is_told,
            1 + coalesce((SELECT max(step) FROM rules.decision WHERE decision.notification = digest_item.notification), 0)
        FROM rules.digest_item JOIN \(table(keys)) USING (app, user_id, bucket) WHERE dead_at IS NULL
        ORDER BY app, user_id, bucket, from_at, said_at, item
        """
    }

    /// Deletes removed items, except those with a later notification.
    static func remove(_ rows: [DueBucket]) -> SQL {
        let gone = rows.flatMap { row in row.closing.gone.map { (row.key, $0) } }
        return """
            DELETE FROM rules.digest_item USING \(table(gone))
            WHERE (digest_item.app, digest_item.user_id, digest_item.bucket, digest_item.item)
                = (new.app, new.user_id, new.bucket, new.item) AND digest_item.said_at <= new.said_at
            """
    }

    static func markTold(_ rows: [DueBucket]) -> SQL {
        let told = rows.flatMap { row in row.closing.told.filter { !$0.wasSent }.map { (row.key, $0) } }
        return """
            UPDATE rules.digest_item SET is_told = true FROM \(table(told))
            WHERE (digest_item.app, digest_item.user_id, digest_item.bucket, digest_item.item)
                = (new.app, new.user_id, new.bucket, new.item) AND digest_item.said_at <= new.said_at
            """
    }

    static func update(_ rows: [DueBucket]) -> SQL {
        let closings = rows.map(\.closing)
        return """
            UPDATE rules.digest SET close_at = new.close_at, planned_at = new.planned_at, last_day = new.last_day,
                last_at = new.last_at
            FROM unnest(
                \(rows.map(\.key.person.app.rawValue)), \(rows.map(\.key.person.user.rawValue)),
                \(rows.map(\.key.bucket)), \(closings.map(\.next?.date)), \(closings.map(\.plannedAt.date)),
                \(closings.map(\.last?.date.dayNumber)), \(closings.map(\.last?.at.date))
            ) AS new (app, user_id, bucket, close_at, planned_at, last_day, last_at)
            WHERE (digest.app, digest.user_id, digest.bucket) = (new.app, new.user_id, new.bucket)
            """
    }

    static func key(_ row: PostgresRow) throws(PostgresError) -> BucketKey {
        BucketKey(person: try PersonRows.key(row), bucket: try row.decode(String.self, at: 2))
    }

    private static func table(_ keys: [BucketKey]) -> SQL {
        """
        unnest(
            \(keys.map(\.person.app.rawValue)), \(keys.map(\.person.user.rawValue)), \(keys.map(\.bucket))
        ) AS new (app, user_id, bucket)
        """
    }

    private static func table(_ items: [(key: BucketKey, item: Bucket.Item)]) -> SQL {
        """
        unnest(
            \(items.map(\.key.person.app.rawValue)), \(items.map(\.key.person.user.rawValue)),
            \(items.map(\.key.bucket)), \(items.map(\.item.name)), \(items.map(\.item.saidAt.date))
        ) AS new (app, user_id, bucket, item, said_at)
        """
    }
}
