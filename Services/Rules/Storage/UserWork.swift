import Logging
import Messaging
import Postgres
import PushProtocol
import RuleEngine
import ServiceConnections

/// Tables with at most one row of work for each user: columns `app`, `user_id`, `version`, `due_at` and `dead_at`.
enum UserWork {
    /// Claims the rows that are due, the earliest first. A row that cannot be read or processed is marked as dead
    /// (``DeadRow``) and does not block the others.
    ///
    /// - Parameters:
    ///   - isDue: the condition on the rows.
    ///   - batch: the maximum number of rows.
    ///   - take: claims and reads the rows that a `WHERE` clause selects.
    /// - Returns: the result of one call, or those of the rows that succeeded alone.
    static func claim<Result>(
        from table: DeadRow.Table, where isDue: SQL, atMost batch: Int, _ pool: PostgresPool, _ logger: Logger,
        take: (_ which: SQL) async throws -> Result
    ) async throws -> [Result] {
        let due: SQL = "WHERE \(isDue) ORDER BY due_at LIMIT \(batch)"
        return try await Outage.ofDatabase {
            try await isolatingRows(
                pool, logger, batch: { try await take(due) },
                keys: {
                    try await pool.query("SELECT app, user_id FROM rules.\(identifier: table.rawValue) \(due)").map(
                        DeadRow.personKey)
                },
                alone: { key in try await take("WHERE \(isDue) AND app = \(key[0]) AND user_id = \(key[1])") },
                dead: { DeadRow(table, ofPerson: $0, .failed) })
        }
    }

    /// A table expression of users with the versions of their rows, as `done (app, user_id, version)`.
    static func done(_ rows: [(person: PersonKey, version: Int)]) -> SQL {
        """
        unnest(
            \(rows.map(\.person.app.rawValue)), \(rows.map(\.person.user.rawValue)), \(rows.map(\.version))
        ) AS done (app, user_id, version)
        """
    }
}
