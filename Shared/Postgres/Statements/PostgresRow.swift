/// One row of a result. Columns are decoded by name or position:
///
///     let id = try row.decode(UUID.self, at: "id")
///     let seen = try row.decode(Date?.self, at: "last_seen")
///
/// NULL decodes to an optional only. A missing column or another type throws a `decoding` error with column, expected
/// and actual type, without the value.
package struct PostgresRow: Sendable {
    private let table: ResultTable
    private let index: Int

    init(table: ResultTable, index: Int) {
        self.table = table
        self.index = index
    }

    package var columnNames: [String] { table.columns.map(\.name) }

    package func decode<Value: PostgresValue>(
        _ type: Value.Type = Value.self, at column: String
    ) throws(PostgresError) -> Value {
        guard let position = table.columns.firstIndex(where: { $0.name == column }) else {
            throw PostgresError(
                .decoding, operation: table.operation,
                detail: "there is no column “\(column)”; the columns are \(columnNames.joined(separator: ", "))")
        }
        return try decode(type, at: position)
    }

    package func decode<Value: PostgresValue>(
        _ type: Value.Type = Value.self, at position: Int
    ) throws(PostgresError) -> Value {
        guard table.columns.indices.contains(position) else {
            throw PostgresError(
                .decoding, operation: table.operation,
                detail: "there is no column \(position); there are \(table.columns.count), counted from 0")
        }
        do {
            return try Value.decode(table.cell(row: index, column: position))
        } catch {
            throw PostgresError(
                .decoding, operation: table.operation,
                detail: "column “\(table.columns[position].name)” of row \(index): "
                    + "expected \(error.expected), found \(error.found)")
        }
    }
}

extension [PostgresRow] {
    /// Returns the first column of the only row, for instance of `SELECT count(*)`.
    package func single<Value: PostgresValue>(_ type: Value.Type = Value.self) throws(PostgresError) -> Value {
        guard count == 1, let row = first else {
            throw PostgresError(.decoding, operation: "single row", detail: "expected one row, found \(count)")
        }
        return try row.decode(type, at: 0)
    }

    /// Returns the first column of all rows.
    package func column<Value: PostgresValue>(_ type: Value.Type) throws(PostgresError) -> [Value] {
        try map { row throws(PostgresError) in try row.decode(type, at: 0) }
    }
}
