import FoundationEssentials
import Postgres

/// Rows that the services cannot work on, as an operator sees them and decides about them.
struct DeadRowStore: Sendable {
    private let database: PostgresPool

    init(_ database: PostgresPool) { self.database = database }

    /// The dead rows that are meant. A member that is `nil` leaves no row out.
    struct Choice: Hashable, Sendable {
        var table: DeadRowTable?
        var app: String?
        var reason: String?
        var key: String?
    }

    /// A dead row, without its content.
    struct Entry: Hashable, Sendable {
        var table: String
        var app: String?
        var key: String
        var reason: String
        var deadAt: Date
    }

    /// An operator's decision.
    enum Decision: Sendable {
        /// The row is worked on again; a row that fails again is dead again.
        case retry
        /// The row is removed permanently.
        case drop
    }

    /// The dead rows, the latest of each table first, at most `limit` of each.
    func list(_ choice: Choice, limit: Int) async throws -> [Entry] {
        var entries: [Entry] = []
        for table in try await tables(choice) {
            let rows = try await database.query(
                """
                SELECT \(table.appSQL), \(table.keySQL), coalesce(dead_reason, ''), dead_at FROM \(table.sql)
                WHERE \(table.matches(choice)) ORDER BY dead_at DESC LIMIT \(limit)
                """)
            for row in rows {
                entries.append(
                    Entry(
                        table: table.name, app: try row.decode(at: 0), key: try row.decode(at: 1),
                        reason: try row.decode(at: 2), deadAt: try row.decode(at: 3)))
            }
        }
        return entries
    }

    /// How many dead rows are meant, by table, without the tables that have none.
    func count(_ choice: Choice) async throws -> [(table: String, count: Int)] {
        var counts: [(table: String, count: Int)] = []
        for table in try await tables(choice) {
            let count: Int = try await database.query(
                "SELECT count(*) FROM \(table.sql) WHERE \(table.matches(choice))"
            ).single()
            if count > 0 { counts.append((table.name, count)) }
        }
        return counts
    }

    /// Decides about the dead rows that are meant.
    ///
    /// - Returns: how many rows it was about.
    func decide(_ decision: Decision, about choice: Choice) async throws -> Int {
        var count = 0
        for table in try await tables(choice) {
            let statement =
                switch decision {
                case .retry: table.retry(choice)
                case .drop: table.drop(choice)
                }
            count += try await database.query(statement).single(Int.self)
        }
        return count
    }

    /// The tables that are meant and that have been migrated to have dead rows.
    private func tables(_ choice: Choice) async throws -> [DeadRowTable] {
        var tables: [DeadRowTable] = []
        for table in choice.table.map({ [$0] }) ?? DeadRowTable.all {
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

    /// A row's key as one text.
    fileprivate var keySQL: SQL {
        var columns: SQL = "'/'"
        for column in key { columns = "\(columns), \(identifier: column)" }
        return "concat_ws(\(columns))"
    }

    fileprivate func matches(_ choice: DeadRowStore.Choice) -> SQL {
        """
        dead_at IS NOT NULL AND (\(choice.app)::text IS NULL OR \(appSQL) = \(choice.app))
            AND (\(choice.reason)::text IS NULL OR dead_reason = \(choice.reason))
            AND (\(choice.key)::text IS NULL OR \(keySQL) = \(choice.key))
        """
    }

    /// Answers how many rows are alive again.
    fileprivate func retry(_ choice: DeadRowStore.Choice) -> SQL {
        """
        WITH done AS (
            UPDATE \(sql) SET dead_at = NULL, dead_reason = NULL WHERE \(matches(choice)) RETURNING 1
        ) SELECT count(*) FROM done
        """
    }

    /// Answers how many rows are gone.
    fileprivate func drop(_ choice: DeadRowStore.Choice) -> SQL {
        switch drop {
        case .delete:
            "WITH done AS (DELETE FROM \(sql) WHERE \(matches(choice)) RETURNING 1) SELECT count(*) FROM done"
        case .deleteBucket:
            """
            WITH done AS (
                DELETE FROM \(sql) WHERE \(matches(choice)) RETURNING app, user_id, bucket
            ), items AS (
                DELETE FROM rules.digest_item USING done WHERE (digest_item.app, digest_item.user_id, digest_item.bucket)
                    = (done.app, done.user_id, done.bucket)
            ) SELECT count(*) FROM done
            """
        case .endCrowd:
            """
            WITH done AS (
                UPDATE \(sql) SET body = NULL, circles = NULL, told = '', decided = NULL, due_at = NULL,
                    ended_at = clock_timestamp(), dead_at = NULL, dead_reason = NULL
                WHERE \(matches(choice)) RETURNING 1
            ) SELECT count(*) FROM done
            """
        case .resetPerson:
            """
            WITH done AS (
                UPDATE \(sql) SET settings = '{}', logs = '{}', dead_at = NULL, dead_reason = NULL
                WHERE \(matches(choice)) RETURNING 1
            ) SELECT count(*) FROM done
            """
        }
    }
}
