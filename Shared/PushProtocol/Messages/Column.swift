/// A column of a table on the wire: a value for each row, or a single one that is every row's.
struct Column<Value: Codable & Equatable & Sendable> {
    private let values: [Value]

    init(_ rows: [Value]) {
        let isShared = rows.dropFirst().allSatisfy { $0 == rows[0] }
        values = isShared ? Array(rows.prefix(1)) : rows
    }

    /// Whether it belongs to a table of so many rows.
    func fits(_ rows: Int) -> Bool { values.count == rows || values.count == 1 }

    subscript(row: Int) -> Value { values.count == 1 ? values[0] : values[row] }
}

extension Column: Codable {
    init(from decoder: any Decoder) throws { values = try [Value](from: decoder) }

    func encode(to encoder: any Encoder) throws { try values.encode(to: encoder) }
}

extension KeyedDecodingContainer {
    /// Reads a column of a table with so many rows, and refuses one of another length.
    func decodeIfPresent<Value>(
        _: Column<Value>.Type, forKey key: Key, rows: Int
    ) throws -> Column<Value>? {
        guard let column = try decodeIfPresent(Column<Value>.self, forKey: key) else { return nil }
        guard column.fits(rows) else {
            throw DecodingError.dataCorruptedError(
                forKey: key, in: self, debugDescription: "there must be one, or as many as devices, \(rows)")
        }
        return column
    }

    /// The same for a column that every table has.
    func decode<Value>(_: Column<Value>.Type, forKey key: Key, rows: Int) throws -> Column<Value> {
        guard let column = try decodeIfPresent(Column<Value>.self, forKey: key, rows: rows) else {
            throw DecodingError.keyNotFound(
                key, .init(codingPath: codingPath, debugDescription: "a table has this column"))
        }
        return column
    }
}

extension ByteCursor {
    /// Writes what a ``Column`` with these values in so many rows is. By their places: a row has many parts to copy.
    @inline(__always)
    mutating func column<Value: Equatable>(
        of rows: Int, _ value: (Int) -> Value, _ write: (inout ByteCursor, Value) -> Void
    ) {
        let isShared = (0..<rows).dropFirst().allSatisfy { value($0) == value(0) }
        list(of: isShared ? min(rows, 1) : rows) { json, row in write(&json, value(row)) }
    }

    /// Writes an array with a value for each of so many rows.
    @inline(__always)
    mutating func list(of rows: Int, _ write: (inout ByteCursor, Int) -> Void) {
        put("[")
        for row in 0..<rows {
            if row > 0 { put(",") }
            write(&self, row)
        }
        put("]")
    }
}
