import FoundationEssentials
import Messaging
import Postgres
import PushProtocol
import ServiceConnections

/// The retention of data that grows with every event.
struct HistoryTerms: Sendable {
    /// For inbox items.
    var inbox: Duration
    /// For decisions, outcomes and receipts, and for the events that detect redeliveries.
    var history: Duration

    static let usual = HistoryTerms(inbox: .seconds(90 * 86_400), history: .seconds(30 * 86_400))
}

/// Deletes expired rows in small steps, the oldest first.
struct HistoryStore: Sendable {
    /// The approximate number of rows in one step.
    static let defaultStep = 1000

    let pool: PostgresPool
    var step = HistoryStore.defaultStep

    /// The tables, in the order of deletion: a referring row goes before the row that it refers to.
    enum Table: String, Sendable, CaseIterable {
        case decision, outcome, receipt, event, inbox
        case rendered = "saying"

        fileprivate var time: SQL {
            switch self {
            case .decision: "decided_at"
            case .event: "arrived_at"
            case .rendered: "said_at"
            case .outcome, .receipt, .inbox: "at"
            }
        }

        /// The time up to which rows of this table are expired.
        fileprivate func past(_ terms: HistoryTerms, now: Timestamp) -> Date {
            switch self {
            case .decision, .outcome, .receipt, .event: (now - terms.history).date
            case .inbox: (now - terms.inbox).date
            // A rendered notification is older than its inbox items.
            case .rendered: (now - max(terms.inbox, terms.history)).date
            }
        }

        /// The condition under which an expired row stays.
        fileprivate func isNeeded(past: Date) -> SQL {
            switch self {
            case .decision:
                // Decisions stay with held and gathered notifications, to explain them. All decisions of a notification
                // go together. An event stays known while it has a decision.
                """
                EXISTS (SELECT FROM rules.held WHERE held.notification = decision.notification)
                OR EXISTS (SELECT FROM rules.digest_item WHERE digest_item.notification = decision.notification)
                OR EXISTS (SELECT FROM rules.decision AS later WHERE later.notification = decision.notification
                    AND later.decided_at > \(past))
                """
            case .outcome: "EXISTS (SELECT FROM rules.decision WHERE decision.notification = outcome.notification)"
            case .receipt: "EXISTS (SELECT FROM rules.decision WHERE decision.notification = receipt.notification)"
            // Deleted last: an unknown event would be decided again.
            case .event: "EXISTS (SELECT FROM rules.decision WHERE decision.event = event.key)"
            case .inbox: "false"
            case .rendered:
                """
                EXISTS (SELECT FROM rules.inbox WHERE inbox.saying = saying.id)
                OR EXISTS (SELECT FROM rules.held WHERE held.saying = saying.id)
                """
            }
        }
    }

    /// The result of a step through a table.
    struct Step: Sendable {
        var deleted: Int
        /// The start of the next step; `nil` at the end of the table.
        var place: Date?
        /// The number of rows that cannot be deleted. The next pass through the table tries them again.
        var failed = 0
        var failure: (any Error)?
    }

    /// Deletes the expired rows of a table's next range, unless they are needed. A row that cannot be deleted does not
    /// block the others.
    ///
    /// - Parameter place: the end of the previous step; `nil`: begins with the oldest row.
    /// - Returns: `nil` if another process is deleting.
    func advance(
        _ table: Table, after place: Date?, _ terms: HistoryTerms, now: Timestamp
    ) async throws -> Step? {
        let past = table.past(terms, now: now)
        return try await Outage.ofDatabase {
            do {
                return try await pool.transaction { transaction in
                    guard try await transaction.query(AdvisoryLock.history.attempt).single(Bool.self) else {
                        return nil
                    }
                    let end = try await transaction.query(
                        HistoryStore.end(of: step, table, after: place, past: past)
                    ).first?.decode(Date.self, at: 0)
                    let deleted = try await transaction.query(
                        HistoryStore.deletion(table, after: place, until: end ?? past, past: past, now: now)
                    ).single(Int.self)
                    return Step(deleted: deleted, place: end)
                }
            } catch let error where error.isCausedByRows {
                return try await advanceByHalves(table, after: place, past: past, now: now)
            }
        }
    }

    private func advanceByHalves(_ table: Table, after place: Date?, past: Date, now: Timestamp) async throws -> Step {
        let end = try await pool.query(HistoryStore.end(of: step, table, after: place, past: past)).first?
            .decode(Date.self, at: 0)
        let rows = try await pool.query(
            """
            SELECT ctid::text FROM rules.\(identifier: table.rawValue)
            WHERE \(HistoryStore.range(table, after: place, until: end ?? past))
            """
        ).column(String.self)
        var halving = RowHalving()
        try await halving.run(rows[...]) { part in
            try await pool.transaction { transaction in
                guard try await transaction.query(AdvisoryLock.history.attempt).single(Bool.self) else { return 0 }
                return try await transaction.query(
                    HistoryStore.deletion(table, after: place, until: end ?? past, past: past, now: now, only: part)
                ).single(Int.self)
            }
        }
        return Step(deleted: halving.done, place: end, failed: halving.failed.count, failure: halving.failure)
    }

    /// Selects the time at which a step ends; no row for the last step.
    static func end(of step: Int, _ table: Table, after place: Date?, past: Date) -> SQL {
        """
        SELECT \(table.time) FROM rules.\(identifier: table.rawValue) WHERE \(range(table, after: place, until: past))
        ORDER BY \(table.time) OFFSET \(step - 1) LIMIT 1
        """
    }

    /// Deletes rows and returns their number. Schedules badge corrections for users who lose unread inbox items.
    ///
    /// - Parameter rows: the `ctid`s of the rows to delete; `nil`: the whole range.
    static func deletion(
        _ table: Table, after place: Date?, until end: Date, past: Date, now: Timestamp, only rows: [String]? = nil
    ) -> SQL {
        let only: SQL = rows.map { "AND ctid = ANY(\($0)::text[]::tid[])" } ?? ""
        let deletion: SQL = """
            DELETE FROM rules.\(identifier: table.rawValue)
            WHERE \(range(table, after: place, until: end)) AND NOT (\(table.isNeeded(past: past))) \(only)
            """
        return switch table {
        case .inbox:
            """
            WITH gone AS (\(deletion) RETURNING app, user_id, read_at),
                changed AS (SELECT app, user_id FROM gone WHERE read_at IS NULL),
                noted AS (\(BadgeStore.noteLater(now: now)))
            SELECT count(*) FROM gone
            """
        case .decision, .outcome, .receipt, .event, .rendered:
            "WITH gone AS (\(deletion) RETURNING 1) SELECT count(*) FROM gone"
        }
    }

    private static func range(_ table: Table, after place: Date?, until end: Date) -> SQL {
        guard let place else { return "\(table.time) <= \(end)" }
        return "\(table.time) > \(place) AND \(table.time) <= \(end)"
    }
}
