import FoundationEssentials
import Postgres

/// Reads, retries and drops rows that the services cannot process.
struct DeadRowStore: Sendable {
    private let database: PostgresPool

    init(_ database: PostgresPool) { self.database = database }

    /// A filter of dead rows. `nil` members match all.
    struct RowFilter: Hashable, Sendable {
        var table: DeadRowTable?
        var app: String?
        var reason: String?
        var key: String?
    }

    /// A dead row without its content.
    struct DeadRow: Hashable, Sendable {
        var table: String
        var app: String?
        var key: String
        var reason: String
        var deadAt: Date
    }

    /// An operator's command.
    enum DeadRowAction: Sendable {
        /// Processes the row again; if it fails, it is dead again.
        case retry
        /// Deletes the row permanently.
        case drop
    }

    /// The matching rows, the latest of each table first, at most `limit` per table.
    func list(_ filter: RowFilter, limit: Int) async throws -> [DeadRow] {
        var entries: [DeadRow] = []
        for table in try await tables(filter) {
            let rows = try await database.query(
                """
                SELECT \(table.appSQL), \(table.keySQL), coalesce(dead_reason, ''), dead_at FROM \(table.sql)
                WHERE \(table.matches(filter)) ORDER BY dead_at DESC LIMIT \(limit)
                """)
            for row in rows {
                entries.append(
                    DeadRow(
                        table: table.name, app: try row.decode(at: 0), key: try row.decode(at: 1),
                        reason: try row.decode(at: 2), deadAt: try row.decode(at: 3)))
            }
        }
        return entries
    }

    /// The number of matching rows by table; omits tables without any.
    func count(_ filter: RowFilter) async throws -> [(table: String, count: Int)] {
        var counts: [(table: String, count: Int)] = []
        for table in try await tables(filter) {
            let count: Int = try await database.query(
                "SELECT count(*) FROM \(table.sql) WHERE \(table.matches(filter))"
            ).single()
            if count > 0 { counts.append((table.name, count)) }
        }
        return counts
    }

    /// Applies `decision` to the matching rows.
    ///
    /// - Returns: the number of rows changed.
    func apply(_ decision: DeadRowAction, about filter: RowFilter) async throws -> Int {
        var count = 0
        for table in try await tables(filter) {
            let statement =
                switch decision {
                case .retry: table.retry(filter)
                case .drop: table.drop(filter)
                }
            count += try await database.query(statement).single(Int.self)
        }
        return count
    }

    /// The matching tables whose migration has added dead rows.
    private func tables(_ filter: RowFilter) async throws -> [DeadRowTable] {
        var tables: [DeadRowTable] = []
        for table in filter.table.map({ [$0] }) ?? DeadRowTable.all {
            let isMigrated: Bool = try await database.query(
                """
                SELECT EXISTS (SELECT FROM pg_attribute
                    WHERE attrelid = to_regclass(\(table.name)) AND attname = 'dead_at' AND NOT attisdropped)
                """
            ).single()
            if isMigrated { tables.append(table) }
        }
        return tables
    }
}

extension DeadRowTable {
    fileprivate var sql: SQL { "\(identifier: schema).\(identifier: table)" }

    fileprivate var appSQL: SQL {
        switch app {
        case .column: "app::text"
        case .event: "(body ->> 'app')"
        case .none: "NULL::text"
        }
    }

    /// A row's key as text.
    fileprivate var keySQL: SQL {
        var columns: SQL = "'/'"
        for column in key { columns = "\(columns), \(identifier: column)" }
        return "concat_ws(\(columns))"
    }

    fileprivate func matches(_ filter: DeadRowStore.RowFilter) -> SQL {
        """
        dead_at IS NOT NULL AND (\(filter.app)::text IS NULL OR \(appSQL) = \(filter.app))
            AND (\(filter.reason)::text IS NULL OR dead_reason = \(filter.reason))
            AND (\(filter.key)::text IS NULL OR \(keySQL) = \(filter.key))
        """
    }

    /// Returns the number of rows revived.
    fileprivate func retry(_ filter: DeadRowStore.RowFilter) -> SQL {
        """
        WITH done AS (
            UPDATE \(sql) SET dead_at = NULL, dead_reason = NULL WHERE \(matches(filter)) RETURNING 1
        ) SELECT count(*) FROM done
        """
    }

    /// Returns the number of rows removed.
    fileprivate func drop(_ filter: DeadRowStore.RowFilter) -> SQL {
        switch drop {
        case .delete:
            "WITH done AS (DELETE FROM \(sql) WHERE \(matches(filter)) RETURNING 1) SELECT count(*) FROM done"
        case .deleteBucket:
            """
            WITH done AS (
                DELETE FROM \(sql) WHERE \(matches(filter)) RETURNING app, user_id, bucket
            ), items AS (
                DELETE FROM rules.digest_item USING done WHERE (digest_item.app, digest_item.user_id, digest_item.bucket)
                    = (done.app, done.user_id, done.bucket)
            ) SELECT count(*) FROM done
            """
        case .endFanOut:
            """
            WITH done AS (
                UPDATE \(sql) SET body = NULL, circles = NULL, told = '', decided = NULL, due_at = NULL,
                    ended_at = clock_timestamp(), dead_at = NULL, dead_reason = NULL
                WHERE \(matches(filter)) RETURNING 1
            ) SELECT count(*) FROM done
            """
        case .resetPreferences:
            """
            WITH done AS (
                UPDATE \(sql) SET settings = '{}', logs = '{}', dead_at = NULL, dead_reason = NULL
                WHERE \(matches(filter)) RETURNING 1
            ) SELECT count(*) FROM done
            """
        }
    }
}
