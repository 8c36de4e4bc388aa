package import FoundationEssentials
package import Postgres

/// Reads, retries and drops rows that the services cannot process.
package struct DeadRowStore: Sendable {
    private let database: PostgresPool
    private let tables: [DeadRowTable]

    package init(_ database: PostgresPool, tables: [DeadRowTable]) {
        self.database = database
        self.tables = tables
    }

    /// A filter of dead rows. `nil` members match all.
    package struct RowFilter: Hashable, Sendable {
        package var table: String?
        package var app: String?
        package var reason: String?
        package var key: String?

        package init(table: String? = nil, app: String? = nil, reason: String? = nil, key: String? = nil) {
            self.table = table
            self.app = app
            self.reason = reason
            self.key = key
        }
    }

    package struct DeadRow: Hashable, Sendable {
        package var table: String
        package var app: String?
        package var key: String
        package var reason: String
        package var deadAt: Date
    }

    /// An operator's command.
    package enum DeadRowAction: Sendable {
        /// Processes the row again; if it fails, it is dead again.
        case retry
        /// Deletes the row permanently.
        case drop
    }

    /// The matching rows, the latest of each table first, at most `limit` per table.
    package func list(_ filter: RowFilter, limit: Int) async throws -> [DeadRow] {
        var entries: [DeadRow] = []
        for table in try await tables(filter) {
            let rows = try await database.query(
                """
                SELECT \(table.appSQL), \(table.keySQL), coalesce(dead_reason, ''), dead_at FROM \(table.sql)
                WHERE \(table.matches(filter)) ORDER BY dead_at DESC LIMIT \(limit)
                """)
            entries += try rows.map { row in
                DeadRow(
                    table: table.name, app: try row.decode(at: 0), key: try row.decode(at: 1),
                    reason: try row.decode(at: 2), deadAt: try row.decode(at: 3))
            }
        }
        return entries
    }

    /// The number of matching rows by table; omits tables without any.
    package func count(_ filter: RowFilter) async throws -> [(table: String, count: Int)] {
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
    package func apply(_ decision: DeadRowAction, about filter: RowFilter) async throws -> Int {
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
        for table in self.tables where filter.table == nil || filter.table == table.name {
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
