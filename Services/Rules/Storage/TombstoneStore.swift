import FoundationEssentials
import Messaging
import Postgres
import PushProtocol
import RuleEngine
import ServiceConnections

/// Deletes tombstones and rows that are no longer used.
struct TombstoneStore: Sendable {
    /// The retention of tombstones (done items, left groups, erasures, revocations) for events that arrive late, and of
    /// reports for late outcomes.
    static let patience = Duration.seconds(30 * 86_400)
    /// The retention of an empty bucket, which has the time of its last digest.
    static let idleness = Duration.seconds(7 * 86_400)
    /// The retention of an ended presence lease.
    static let staleness = Duration.seconds(3600)
    /// The maximum number of rows that one statement deletes.
    static let batch = 5000

    let pool: PostgresPool
    /// The retention of decisions. Reports are not kept longer than decisions.
    var history = HistoryTerms.usual.history

    /// The result of a sweep.
    struct Swept: Sendable {
        var deleted: [String: Int] = [:]
        /// The `ctid`s of the rows that cannot be deleted, by table.
        var failed: [String: [String]] = [:]
        /// The first failure of this sweep.
        var failure: (any Error)?
        var isMore = false
    }

    /// Deletes a batch of expired rows from each table. Any number of processes may run it. A row that cannot be
    /// deleted does not block the others.
    ///
    /// - Parameter failed: the failed rows of earlier sweeps, which this sweep skips.
    func sweep(now: Timestamp, passingOver failed: [String: [String]] = [:]) async throws -> Swept {
        func before(_ age: Duration) -> Date { (now - age).date }
        let past = before(Self.patience)
        let idle = before(Self.idleness)
        let conditions: [(table: String, over: SQL)] = [
            ("told", "until <= \(now.date)"), ("done", "at <= \(past)"),
            ("done_by", "at <= \(past)"), ("member", "has_left AND at <= \(past)"),
            ("report", "at <= \(before(min(Self.patience, history)))"),
            ("presence", "expires_at <= \(before(Self.staleness))"),
            ("erasure", "done_at <= \(past)"), ("crowd", "ended_at <= \(past)"),
            ("revocation", "ended_at <= \(past)"), ("shown_copy", "noted_at <= \(before(ClearCommand.lifetime))"),
            ("clear_command", "due_at IS NULL AND noted_at <= \(before(ClearCommand.lifetime))"),
            ("event_item", "stored_at <= \(before(history))"), ("replacement", "at <= \(before(history))"),
            ("inbox_removal", "at <= \(before(InboxFeedStore.horizon * 2))"),
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
        var swept = Swept(failed: failed)
        for (name, over) in conditions {
            do {
                let failed = swept.failed[name] ?? []
                let part = try await Outage.ofDatabase { try await sweep(name, over, passingOver: failed) }
                swept.deleted[name] = part.rows.done
                swept.failed[name] = failed + part.rows.failed
                swept.failure = swept.failure ?? part.rows.failure
                swept.isMore = swept.isMore || part.isMore
            } catch let error where error.isCausedByRows {
                swept.failure = swept.failure ?? error
            }
        }
        return swept
    }

    private func sweep(
        _ name: String, _ over: SQL, passingOver failed: [String]
    ) async throws -> (rows: RowHalving, isMore: Bool) {
        let table: SQL = "rules.\(identifier: name)"
        let which: SQL = failed.isEmpty ? over : "(\(over)) AND ctid <> ALL(\(failed)::text[]::tid[])"
        do {
            let deleted = try await delete(from: table, which)
            return (RowHalving(done: deleted), deleted == Self.batch)
        } catch let error where error.isCausedByRows {
            let rows = try await pool.query("SELECT ctid::text FROM \(table) WHERE \(which) LIMIT \(Self.batch)")
                .column(String.self)
            var halving = RowHalving()
            try await halving.run(rows[...]) { part in
                try await delete(from: table, "ctid = ANY(\(part)::text[]::tid[]) AND (\(over))")
            }
            return (halving, rows.count == Self.batch)
        }
    }

    private func delete(from table: SQL, _ which: SQL) async throws -> Int {
        try await pool.execute(
            """
            DELETE FROM \(table) WHERE ctid = ANY(ARRAY(
                SELECT ctid FROM \(table) WHERE \(which) LIMIT \(Self.batch) FOR UPDATE SKIP LOCKED))
            """)
    }
}
