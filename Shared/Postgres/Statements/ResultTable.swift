/// A complete result, copied from libpq into one buffer shared by its rows.
final class ResultTable: Sendable {
    struct Column: Sendable {
        let name: String
        let oid: UInt32
    }

    let operation: String
    let columns: [Column]
    let rowCount: Int
    private let bytes: [UInt8]
    /// The range of each cell in `bytes`, row by row; `nil` for NULL.
    private let cells: [Range<Int>?]

    init(operation: String, columns: [Column], rowCount: Int, bytes: [UInt8], cells: [Range<Int>?]) {
        self.operation = operation
        self.columns = columns
        self.rowCount = rowCount
        self.bytes = bytes
        self.cells = cells
    }

    func cell(row: Int, column: Int) -> PostgresCell {
        PostgresCell(oid: columns[column].oid, bytes: cells[row * columns.count + column].map { bytes[$0] })
    }
}

struct StatementResult: Sendable {
    let table: ResultTable
    /// The command tag's count: rows inserted, updated, deleted or selected.
    let affected: Int
    /// The command tag's first word. The tag of a `COMMIT` of a failed transaction is `ROLLBACK`.
    let command: String

    var rows: [PostgresRow] { (0..<table.rowCount).map { PostgresRow(table: table, index: $0) } }
}
