import FoundationEssentials
import Messaging
import Postgres
import PushProtocol
import ServiceKit

/// What is kept only for words that may still come, and for nothing any more.
struct RemnantStore: Sendable {
    /// How long the last word about what is done, and about who has left a group, is kept for older ones that come late;
    /// and a report for outcomes.
    static let patience = Duration.seconds(30 * 86_400)
    /// How long a bucket that has nothing in it remembers when it was told.
    static let idleness = Duration.seconds(7 * 86_400)
    /// The most that is deleted of one kind at once.
    static let batch = 5000

    let pool: PostgresPool

    /// Deletes what is over, a batch of each kind. Any number of processes may do this.
    ///
    /// - Returns: whether there may be more.
    func sweep(now: Timestamp) async throws -> Bool {
        let past = Timestamp(milliseconds: now.milliseconds - Self.patience.components.seconds * 1000).date
        let idle = Timestamp(milliseconds: now.milliseconds - Self.idleness.components.seconds * 1000).date
        let conditions: [(table: SQL, over: SQL)] = [
            ("rules.told", "until <= \(now.date)"), ("rules.done", "at <= \(past)"),
            ("rules.member", "has_left AND at <= \(past)"), ("rules.report", "at <= \(past)"),
            (
                "rules.digest",
                """
                close_at IS NULL AND planned_at <= \(idle) AND coalesce(last_at <= \(idle), true) AND NOT EXISTS (
                    SELECT FROM rules.digest_item WHERE (digest_item.app, digest_item.user_id, digest_item.bucket)
                        = (digest.app, digest.user_id, digest.bucket))
                """
            ),
        ]
        var isMore = false
        for (table, over) in conditions {
            let deleted = try await Outage.ofDatabase {
                try await pool.execute(
                    """
                    DELETE FROM \(table) WHERE ctid = ANY(ARRAY(
                        SELECT ctid FROM \(table) WHERE \(over) LIMIT \(Self.batch) FOR UPDATE SKIP LOCKED))
                    """)
            }
            if deleted == Self.batch { isMore = true }
        }
        return isMore
    }
}
