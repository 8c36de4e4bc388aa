package import Postgres

/// A table with `dead_at` and `dead_reason`, in which a service marks rows that it cannot process. The module with a
/// service's SQL lists its tables.
package struct DeadRowTable: Sendable {
    let schema: String
    let table: String
    /// The columns of its primary key.
    let key: [String]
    let app: AppSource
    let drop: DropEffect

    package init(
        schema: String, table: String, key: [String], app: AppSource = .column, drop: DropEffect = .delete
    ) {
        self.schema = schema
        self.table = table
        self.key = key
        self.app = app
        self.drop = drop
    }

    /// The source of a row's app.
    package enum AppSource: Sendable {
        /// The column `app`.
        case column
        /// The member `app` of the event in the column `body`.
        case event
    }

    package enum DropEffect: Sendable {
        case delete
        /// Also deletes the rows of another table of the schema with the same key.
        case deleteWithItems(of: String)
        /// Keeps the row, with these assignments of an `UPDATE`.
        case update(SQL)
    }

    /// The name on the command line and in metrics, such as `rules.held`.
    package var name: String { "\(schema).\(table)" }
}

extension DeadRowTable {
    var sql: SQL { "\(identifier: schema).\(identifier: table)" }

    var appSQL: SQL {
        switch app {
        case .column: "app::text"
        case .event: "(body ->> 'app')"
        }
    }

    /// A row's key as text.
    var keySQL: SQL { "concat_ws('/', \(columns()))" }

    private func columns(of table: String? = nil) -> SQL {
        var columns: SQL?
        for name in key {
            let column: SQL = table.map { "\(identifier: $0).\(identifier: name)" } ?? "\(identifier: name)"
            columns = columns.map { "\($0), \(column)" } ?? column
        }
        return columns ?? ""
    }

    func matches(_ filter: DeadRowStore.RowFilter) -> SQL {
        """
        dead_at IS NOT NULL AND (\(filter.app)::text IS NULL OR \(appSQL) = \(filter.app))
            AND (\(filter.reason)::text IS NULL OR dead_reason = \(filter.reason))
            AND (\(filter.key)::text IS NULL OR \(keySQL) = \(filter.key))
        """
    }

    /// Returns the number of rows revived.
    func retry(_ filter: DeadRowStore.RowFilter) -> SQL {
        """
        WITH done AS (
            UPDATE \(sql) SET dead_at = NULL, dead_reason = NULL WHERE \(matches(filter)) RETURNING 1
        ) SELECT count(*) FROM done
        """
    }

    /// Returns the number of rows removed.
    func drop(_ filter: DeadRowStore.RowFilter) -> SQL {
        switch drop {
        case .delete:
            "WITH done AS (DELETE FROM \(sql) WHERE \(matches(filter)) RETURNING 1) SELECT count(*) FROM done"
        case .deleteWithItems(let items):
            """
            WITH done AS (
                DELETE FROM \(sql) WHERE \(matches(filter)) RETURNING \(columns())
            ), items AS (
                DELETE FROM \(identifier: schema).\(identifier: items) USING done
                WHERE (\(columns(of: items))) = (\(columns(of: "done")))
            ) SELECT count(*) FROM done
            """
        case .update(let assignments):
            """
            WITH done AS (
                UPDATE \(sql) SET \(assignments), dead_at = NULL, dead_reason = NULL
                WHERE \(matches(filter)) RETURNING 1
            ) SELECT count(*) FROM done
            """
        }
    }
}
