import FoundationEssentials
import Messaging
import Postgres
import PushProtocol
import ServiceKit

/// What is kept only for words that may still come, or for nothing any more.
struct RemnantStore: Sendable {
    /// How long the last word about what is done, about who has left a group, and about who was forgotten is kept for
    /// older ones that come late; and a report for outcomes.
    static let patience = Duration.seconds(30 * 86_400)
    /// How long a bucket that has nothing in it remembers when it was told.
    static let idleness = Duration.seconds(7 * 86_400)
    /// A lease that has been over for so long is nobody's any more.
    static let staleness = Duration.seconds(3600)
    /// The most that is deleted of one kind at once.
    static let batch = 5000

    let pool: PostgresPool
    /// What was decided is not reported about for longer than it is kept.
    var history = HistoryTerms.usual.history

    /// Deletes what is over, a batch of each kind. Any number of processes may do this.
    ///
    /// A table that cannot be swept keeps no other from being swept.
    ///
    /// - Returns: how many rows of each table; and whether there may be more.
    /// - Throws: the first failure, when every other table was swept.
    func sweep(now: Timestamp) async throws -> (deleted: [String: Int], isMore: Bool) {
        func before(_ age: Duration) -> Date { (now - age).date }
        let past = before(Self.patience)
        let idle = before(Self.idleness)
        let conditions: [(table: String, over: SQL)] = [
            ("told", "until <= \(now.date)"), ("done", "at <= \(past)"), ("member", "has_left AND at <= \(past)"),
            ("report", "at <= \(before(min(Self.patience, history)))"),
            ("presence", "expires_at <= \(before(Self.staleness))"),
            ("erasure", "done_at <= \(past)"), ("crowd", "ended_at <= \(past)"),
            (
                "circle",
                """
                told_at <= \(past) AND NOT EXISTS (
                    SELECT FROM rules.member WHERE (member.app, member.circle) = (circle.app, circle.circle))
                """
            ),
            (
                "digest",
                """
                close_at IS NULL AND planned_at <= \(idle) AND coalesce(last_at <= \(idle), true) AND NOT EXISTS (
                    SELECT FROM rules.digest_item WHERE (digest_item.app, digest_item.user_id, digest_item.bucket)
                        = (digest.app, digest.user_id, digest.bucket))
                """
            ),
        ]
        var deleted: [String: Int] = [:]
        var failure: (any Error)?
        for (name, over) in conditions {
            let table: SQL = "rules.\(identifier: name)"
            do {
                deleted[name] = try await Outage.ofDatabase {
                    try await pool.execute(
                        """
                        DELETE FROM \(table) WHERE ctid = ANY(ARRAY(
                            SELECT ctid FROM \(table) WHERE \(over) LIMIT \(Self.batch) FOR UPDATE SKIP LOCKED))
                        """)
                }
            } catch let error where error.isOfTheWork {
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
        return (deleted, deleted.values.contains(Self.batch))
    }
}
