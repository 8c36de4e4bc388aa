import FoundationEssentials
import Messaging
import Postgres
import PushProtocol
import ServiceConnections
import ServiceKit

/// For how long is kept what grows with every event.
struct HistoryTerms: Sendable {
    /// Inboxes.
    var inbox: Duration
    /// Decisions with all that tells about them, and the events that are known by them.
    var history: Duration

    static let usual = HistoryTerms(inbox: .seconds(90 * 86_400), history: .seconds(30 * 86_400))
}

/// What is kept for a time only, and deleted a little at a time, the oldest first.
struct HistoryStore: Sendable {
    /// About how many rows one step looks at.
    static let usualStep = 1000

    let pool: PostgresPool
    var step = HistoryStore.usualStep

    /// What is looked through, in this order: what is referred to goes after what refers to it.
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

        /// What is written here must be older than that to go.
        fileprivate func past(_ terms: HistoryTerms, now: Timestamp) -> Date {
            switch self {
            case .decision, .outcome, .receipt, .event: (now - terms.history).date
            case .inbox: (now - terms.inbox).date
            // Whatever is in an inbox was said before.
            case .rendered: (now - max(terms.inbox, terms.history)).date
            }
        }

        /// What keeps a row although it is old.
        fileprivate func isNeeded(past: Date) -> SQL {
            switch self {
            case .decision:
                // What waits, or is gathered, is explained by how it came to that; and all steps go together. An event is
                // known by its decisions for as long as one of them is here.
                """
                EXISTS (SELECT FROM rules.held WHERE held.notification = decision.notification)
                OR EXISTS (SELECT FROM rules.digest_item WHERE digest_item.notification = decision.notification)
                OR EXISTS (SELECT FROM rules.decision AS later WHERE later.notification = decision.notification
                    AND later.decided_at > \(past))
                """
            case .outcome: "EXISTS (SELECT FROM rules.decision WHERE decision.notification = outcome.notification)"
            case .receipt: "EXISTS (SELECT FROM rules.decision WHERE decision.notification = receipt.notification)"
            // An event that is not known any more would be decided again: it goes last.
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
        /// Where the next step begins; `nil` when there is none.
        var place: Date?
        /// The number of rows that cannot be deleted. The next walk through the table tries them again.
        var failed = 0
        var failure: (any Error)?
    }

    /// Deletes old rows that are not needed in the next range of a table. A row that cannot be deleted keeps no other row from
    /// being deleted.
    ///
    /// - Parameter place: where the last step ended; `nil` to begin with the oldest.
    /// - Returns: `nil` when another process is at it.
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
            } catch let error where error.isOfTheWork {
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
        ).map { try $0.decode(String.self, at: 0) }
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

    /// The time at which a step ends; no row when nothing old is left after it.
    static func end(of step: Int, _ table: Table, after place: Date?, past: Date) -> SQL {
        """
        SELECT \(table.time) FROM rules.\(identifier: table.rawValue) WHERE \(range(table, after: place, until: past))
        ORDER BY \(table.time) OFFSET \(step - 1) LIMIT 1
        """
    }

    /// Deletes, and answers how many rows went. Whose inbox had something unread among them has another badge from then on.
    ///
    /// - Parameter rows: the places of the rows that may go; `nil`: all of the range.
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
