import Logging
import Messaging
import Postgres
import PushProtocol
import RuleEngine
import ServiceConnections
import ServiceKit

/// A row that cannot be processed. It is marked with `dead_at` and `dead_reason`, and skipped until an operator retries
/// or drops it (`pushctl dead-rows`).
struct DeadRow: Hashable, Sendable {
    var table: Table
    /// The row's app, unvalidated; `nil` if the row has no app.
    var app: String?
    /// The values of the table's key, as text.
    var key: [String]
    var reason: Reason

    /// A table of the schema `rules` whose rows can be dead.
    enum Table: String, Sendable, CaseIterable {
        case held, digest, badge, report, inbox, person, member, revocation, channel
        case largeAudience = "crowd"
        case digestItem = "digest_item"
        case preferenceChange = "preference_change"
        case clearCommand = "clear_command"

        /// The columns of the table's key, and their types.
        fileprivate var key: [(column: String, type: SQL)] {
            switch self {
            case .held, .report, .inbox: [("notification", "uuid")]
            case .revocation, .channel: [("id", "uuid")]
            case .largeAudience: [("event", "uuid"), ("rule", "text")]
            case .digest: [("app", "text"), ("user_id", "text"), ("bucket", "text")]
            case .digestItem: [("app", "text"), ("user_id", "text"), ("bucket", "text"), ("item", "text")]
            case .member: [("app", "text"), ("circle", "text"), ("user_id", "text")]
            case .badge, .person, .preferenceChange, .clearCommand: [("app", "text"), ("user_id", "text")]
            }
        }
    }

    /// Why a row is dead. Stored, logged and used as a metric label, so the raw values are fixed.
    enum Reason: String, Sendable, CaseIterable {
        /// The row contains a value that this build cannot read.
        case unreadable
        /// Processing the row alone failed, and the database was available.
        case failed
        /// No message can carry it: too large, too deeply nested, or permanently refused by the broker.
        case unsendable
    }

    /// The statement that marks the row, unless it is marked already or locked by another transaction.
    var mark: SQL {
        var condition: SQL = "dead_at IS NULL"
        for ((column, type), value) in zip(table.key, key) {
            condition = "\(condition) AND \(identifier: column) = \(value)::\(type)"
        }
        let name: SQL = "rules.\(identifier: table.rawValue)"
        return """
            UPDATE \(name) SET dead_at = clock_timestamp(), dead_reason = \(reason.rawValue)
            WHERE ctid = (SELECT ctid FROM \(name) WHERE \(condition) FOR UPDATE SKIP LOCKED)
            """
    }

    /// Counts and logs the dead row, without its content.
    func report(_ logger: Logger) {
        DeadRows.count(in: "rules.\(table.rawValue)", because: reason.rawValue)
        logger.warning(
            "A row cannot be processed and is skipped; see pushctl dead-rows list",
            metadata: [
                LogKey.table: "rules.\(table.rawValue)", LogKey.app: "\(app ?? "-")",
                LogKey.row: "\(key.joined(separator: "/"))",
                LogKey.reason: "\(reason.rawValue)",
            ])
    }
}

extension DeadRow {
    /// A row whose key is an app and a user id.
    init(_ table: Table, ofPerson key: [String], _ reason: Reason) {
        self.init(table: table, app: key[0], key: key, reason: reason)
    }

    init(_ table: Table, of person: PersonKey, _ reason: Reason) {
        self.init(table, ofPerson: [person.app.rawValue, person.user.rawValue], reason)
    }

    /// Reads `app` and `user_id` as text from the first columns of a row, without checks.
    static func personKey(of row: PostgresRow) throws(PostgresError) -> [String] {
        [try row.decode(String.self, at: 0), try row.decode(String.self, at: 1)]
    }
}

extension PostgresTransaction {
    /// Marks rows as dead. Counts and logs the newly marked ones.
    func markDead(_ rows: [DeadRow], _ logger: Logger) async throws {
        for row in rows {
            if try await execute(row.mark) > 0 { row.report(logger) }
        }
    }
}

extension PostgresPool {
    /// Marks rows as dead. Counts and logs the newly marked ones. A row that cannot be marked is logged and does not
    /// block the others.
    ///
    /// - Returns: whether every row could be marked.
    @discardableResult
    func markDead(_ rows: [DeadRow], _ logger: Logger) async throws -> Bool {
        var areMarked = true
        for row in rows {
            do throws(PostgresError) {
                if try await execute(row.mark) > 0 { row.report(logger) }
            } catch {
                guard error.isCausedByRows else { throw error }
                areMarked = false
                logger.error(
                    "Cannot mark a dead row; retrying",
                    metadata: [
                        LogKey.table: "rules.\(row.table.rawValue)", LogKey.row: "\(row.key.joined(separator: "/"))",
                        LogKey.error: "\(error)",
                    ])
            }
        }
        return areMarked
    }
}

/// Processes a batch of rows. If the batch fails, processes each row alone, so that one row does not block the others.
/// A row that fails alone is marked as dead.
///
/// - Parameters:
///   - batch: processes all rows in one transaction.
///   - keys: returns the keys of the batch's rows.
///   - alone: processes the row with this key in its own transaction.
///   - dead: returns the dead row for this key.
/// - Returns: the result of the batch, or the results of the rows that succeeded alone.
/// - Throws: errors that do not come from the rows: an outage, a cancelled task.
func isolatingRows<Key, Result>(
    _ pool: PostgresPool, _ logger: Logger, batch: () async throws -> Result, keys: () async throws -> [Key],
    alone: (Key) async throws -> Result, dead: (Key) -> DeadRow
) async throws -> [Result] {
    do {
        return [try await batch()]
    } catch let error where error.isCausedByRows {
        logger.warning(
            "A batch of rows failed; processing each row alone", metadata: [LogKey.error: "\(error)"])
    }
    var results: [Result] = []
    var slow: [Key] = []
    var timeout: (any Error)?
    for key in try await keys() {
        do {
            results.append(try await alone(key))
        } catch let error as PostgresError where error.isTimeout && error.isCausedByRows {
            slow.append(key)
            timeout = error
        } catch let error where error.isCausedByRows {
            try await pool.markDead([dead(key)], logger)
        }
    }
    // Several rows time out alone and no row succeeds: the database is slow, and the rows are not at fault.
    if let timeout, slow.count > 1, results.isEmpty { throw timeout }
    try await pool.markDead(slow.map(dead), logger)
    return results
}

/// Settles rows with one statement. If it fails, settles each row alone, and marks a row that fails alone as dead.
func settlingRows<Row>(
    _ rows: [Row], _ pool: PostgresPool, _ logger: Logger, dead: (Row) -> DeadRow,
    _ statement: ([Row]) -> SQL
) async throws {
    guard !rows.isEmpty else { return }
    try await Outage.ofDatabase {
        _ = try await isolatingRows(
            pool, logger, batch: { try await pool.execute(statement(rows)) }, keys: { rows },
            alone: { try await pool.execute(statement([$0])) }, dead: dead)
    }
}

extension Sequence<PostgresRow> {
    /// Reads each row. A row that cannot be read becomes a dead row.
    func readable<Value>(
        _ read: (PostgresRow) throws -> Value, else dead: (PostgresRow) throws -> DeadRow
    ) rethrows -> (values: [Value], dead: [DeadRow]) {
        var result: (values: [Value], dead: [DeadRow]) = ([], [])
        for row in self {
            do { result.values.append(try read(row)) } catch { result.dead.append(try dead(row)) }
        }
        return result
    }
}

/// Processes rows that failed as a batch. Halves the batch until each failing row is alone.
struct RowHalving {
    /// The number of rows that time out alone, while no other row succeeds, after which the database counts as slow.
    static let mostTimeouts = 8

    /// The sum of the results.
    private(set) var done = 0
    /// The rows that failed alone.
    private(set) var failed: [String] = []
    /// The error of the first of them.
    private(set) var failure: (any Error)?
    private var hasSucceeded = false
    private var timeouts = 0

    init(done: Int = 0) { self.done = done }

    /// - Throws: errors that do not come from the rows.
    mutating func run(_ rows: ArraySlice<String>, _ work: ([String]) async throws -> Int) async throws {
        guard !rows.isEmpty else { return }
        do {
            done += try await work(Array(rows))
            hasSucceeded = true
        } catch let error where error.isCausedByRows {
            guard rows.count == 1 else {
                let middle = rows.startIndex + rows.count / 2
                try await run(rows[..<middle], work)
                return try await run(rows[middle...], work)
            }
            if (error as? PostgresError)?.isTimeout == true { timeouts += 1 }
            guard hasSucceeded || timeouts < Self.mostTimeouts else { throw error }
            failed += rows
            failure = failure ?? error
        }
    }
}

extension Logger {
    /// The default logger of stores.
    static var rules: Logger { Logger(label: "rules") }
}

extension Error {
    /// Whether the rows caused the error. An outage or a cancelled task is independent of them.
    var isCausedByRows: Bool {
        switch self {
        case is CancellationError: false
        case let error as PostgresError:
            switch error.code {
            case .cancelled: false
            // Unknown names, missing privileges, missing schema: the database is not migrated.
            case .sqlState(let state) where state.hasPrefix("42") || state.hasPrefix("3F"): false
            // A lock timeout or a silent server is independent of the row.
            case .deadlineExceeded, .sqlState("55P03"): false
            default: !error.isOutage
            }
        default: !isDatabaseUnavailable
        }
    }
}
