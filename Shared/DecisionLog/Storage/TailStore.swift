import FoundationEssentials
package import Postgres
package import PushProtocol

/// Follows the decision log of an app: returns each decision and outcome once, after it was committed.
///
/// A row's time is no cursor: the sender sets the time of an outcome, and rows commit in any order. The cursor is the
/// oldest transaction that was running at the last call. Rows of this and of later transactions are new, except those
/// already returned (Postgres manual, “Transaction ID and Snapshot Information Functions”). A savepoint's id is higher
/// than that of its transaction, so its rows are found too.
package struct TailStore: Sendable {
    private let database: PostgresPool
    private let app: AppID
    private let user: String?
    private let window: Duration
    private let pageSize: Int

    /// - Parameters:
    ///   - user: only this user's rows; `nil` means all.
    ///   - window: the oldest rows that are read, by their own time. Older rows that are stored late are not returned.
    ///   - pageSize: the number of rows in memory at a time.
    package init(
        _ database: PostgresPool, app: AppID, user: String?, window: Duration, pageSize: Int = 500
    ) {
        self.database = database
        self.app = app
        self.user = user
        self.window = window
        self.pageSize = pageSize
    }

    /// The end of a call. The next call continues here.
    package struct Position: Hashable, Sendable {
        /// The oldest transaction that was running. Transactions before it were complete.
        fileprivate var oldest: Int64
        /// The rows already returned of this and later transactions, with their transactions.
        fileprivate var returned: [RowKey: Int64] = [:]
    }

    fileprivate struct RowKey: Hashable, Sendable {
        var notification: UUID
        var device: UUID?
        /// The step of a decision, or the disposition of an outcome.
        var word: String
    }

    /// A row, its identity and the id of its transaction.
    private struct StoredRow: Sendable {
        var key: RowKey
        var transaction: Int64
        var row: TailRow
    }

    /// Returns the current end of the log. Passes over rows that are committed, but not older than a running transaction.
    package func end() async throws -> Position {
        guard let first = try await database.query(Self.snapshot).first else { throw Self.noSnapshot }
        return try await rows(after: Position(oldest: try first.decode(at: 0))) { _ in }
    }

    /// Calls `take` with pages of the rows that were committed since `position`: decisions, then outcomes.
    ///
    /// - Returns: the position for the next call. After an error, continue with `position`: rows that `take` has
    ///   received in the failed call are passed again.
    package func rows(
        after position: Position, _ take: @Sendable ([TailRow]) throws -> Void
    ) async throws -> Position {
        try await database.transaction(isolation: .repeatableRead) { transaction in
            guard let snapshot = try await transaction.query(Self.snapshot).first else { throw Self.noSnapshot }
            let oldest: Int64 = try snapshot.decode(at: 0)
            let next: Int64 = try snapshot.decode(at: 1)
            var returned = position.returned
            for table in Table.allCases {
                var last: (transaction: Int64, key: RowKey)?
                while true {
                    let page = try await transaction.query(
                        query(table, from: position.oldest, next: next, after: last)
                    ).map { try Self.stored($0, table) }
                    let new = page.filter { returned[$0.key] == nil }
                    if !new.isEmpty { try take(new.map(\.row)) }
                    for row in new where row.transaction >= oldest { returned[row.key] = row.transaction }
                    guard page.count == pageSize, let end = page.last else { break }
                    last = (end.transaction, end.key)
                }
            }
            return Position(oldest: oldest, returned: returned.filter { $0.value >= oldest })
        }
    }

    private enum Table: CaseIterable { case decisions, outcomes }

    private static let noSnapshot = PostgresError(
        .decoding, operation: "read the snapshot", detail: "expected one row, found none")

    private static let snapshot: SQL = """
        SELECT pg_snapshot_xmin(snapshot)::text::bigint, pg_snapshot_xmax(snapshot)::text::bigint
        FROM pg_current_snapshot() AS snapshot
        """

    /// The full transaction id of a row: the highest one up to `next` with the 32 bits that a row has.
    private static func transaction(of table: SQL, next: Int64) -> SQL {
        "(\(next)::bigint - ((\(next)::bigint - \(table).xmin::text::bigint) & 4294967295))"
    }

    private func query(
        _ table: Table, from oldest: Int64, next: Int64, after last: (transaction: Int64, key: RowKey)?
    ) -> SQL {
        let ofUser: SQL = user.map { "AND decision.user_id = \($0)" } ?? ""
        let beyond: SQL =
            last.map {
                """
                AND (transaction, notification, device, word)
                    > (\($0.transaction), \($0.key.notification), \($0.key.device ?? Self.noDevice), \($0.key.word))
                """
            } ?? ""
        let rows: SQL =
            switch table {
            case .decisions:
                """
                SELECT \(Self.transaction(of: "decision", next: next)) AS transaction, decision.notification,
                    \(Self.noDevice)::uuid AS device, decision.step::text COLLATE "C" AS word, decision.decided_at AS at,
                    event.app, decision.user_id, event.id, event.type, decision.rule, decision.reason, decision.answer,
                    decision.until, ''::text AS origin
                FROM rules.decision JOIN rules.event ON event.key = decision.event
                WHERE decision.decided_at >= statement_timestamp() - \(window) AND event.app = \(app.rawValue) \(ofUser)
                """
            case .outcomes:
                """
                SELECT \(Self.transaction(of: "outcome", next: next)) AS transaction, outcome.notification,
                    coalesce(outcome.device, \(Self.noDevice)) AS device, outcome.disposition COLLATE "C" AS word,
                    outcome.at, event.app, decision.user_id, event.id, event.type, decision.rule, outcome.reason,
                    outcome.disposition AS answer, NULL::timestamptz AS until, outcome.origin
                FROM rules.outcome
                    JOIN LATERAL (
                        SELECT user_id, rule, event FROM rules.decision
                        WHERE decision.notification = outcome.notification ORDER BY step LIMIT 1
                    ) AS decision ON true
                    JOIN rules.event ON event.key = decision.event
                WHERE outcome.at >= statement_timestamp() - \(window) AND event.app = \(app.rawValue) \(ofUser)
                """
            }
        return """
            SELECT * FROM (\(rows)) AS rows WHERE transaction >= \(oldest) \(beyond)
            ORDER BY transaction, notification, device, word LIMIT \(pageSize)
            """
    }

    /// Stands for an absent device in comparisons.
    private static let noDevice = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))

    private static func stored(_ row: PostgresRow, _ table: Table) throws(PostgresError) -> StoredRow {
        let device: UUID = try row.decode(at: 2)
        let word: String = try row.decode(at: 3)
        let key = RowKey(
            notification: try row.decode(at: 1), device: device == noDevice ? nil : device, word: word)
        let answer: String = try row.decode(at: 11)
        let kind: TailRow.Kind =
            switch table {
            case .decisions:
                .decision(step: Int(word) ?? 0, answer: answer, until: try row.decode(at: 12))
            case .outcomes: .outcome(origin: try row.decode(at: 13), device: key.device, disposition: answer)
            }
        return StoredRow(
            key: key, transaction: try row.decode(at: 0),
            row: TailRow(
                at: try row.decode(at: 4), app: try row.decode(at: 5), user: try row.decode(at: 6),
                event: try row.decode(at: 7), type: try row.decode(at: 8), rule: try row.decode(at: 9),
                notification: key.notification, reason: try row.decode(at: 10), kind: kind))
    }
}
