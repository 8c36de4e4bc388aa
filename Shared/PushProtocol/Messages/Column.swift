/// A table column on the wire: one value a row, or a single value for all rows.
struct Column<Value: Codable & Equatable & Sendable> {
    private let values: [Value]

    init(_ rows: [Value]) {
        let isShared = rows.dropFirst().allSatisfy { $0 == rows[0] }
        values = isShared ? Array(rows.prefix(1)) : rows
    }

    /// Returns whether the column fits a table of `rows` rows.
    func fits(_ rows: Int) -> Bool { values.count == rows || values.count == 1 }

    subscript(row: Int) -> Value { values.count == 1 ? values[0] : values[row] }
}

extension Column: Codable {
    init(from decoder: any Decoder) throws { values = try [Value](from: decoder) }

    func encode(to encoder: any Encoder) throws { try values.encode(to: encoder) }
}

extension KeyedDecodingContainer {
    /// Decodes an optional column and checks its length.
    func decodeIfPresent<Value>(
        _: Column<Value>.Type, forKey key: Key, rows: Int
    ) throws -> Column<Value>? {
        guard let column = try decodeIfPresent(Column<Value>.self, forKey: key) else { return nil }
        guard column.fits(rows) else {
            throw DecodingError.dataCorruptedError(
                forKey: key, in: self, debugDescription: "expected 1 value, or \(rows), one a device")
        }
        return column
    }

    /// Decodes a required column and checks its length.
    func decode<Value>(_: Column<Value>.Type, forKey key: Key, rows: Int) throws -> Column<Value> {
        guard let column = try decodeIfPresent(Column<Value>.self, forKey: key, rows: rows) else {
            throw DecodingError.keyNotFound(
                key, .init(codingPath: codingPath, debugDescription: "this column is required"))
        }
        return column
    }
}

extension ByteWriter {
    /// Writes the ``Column`` of these values. Accesses rows by index, because copying one is expensive.
    @inline(__always)
    mutating func column<Value: Equatable>(
        of rows: Int, _ value: (Int) -> Value, _ write: (inout ByteWriter, Value) -> Void
    ) {
        let isShared = (0..<rows).dropFirst().allSatisfy { value($0) == value(0) }
        list(of: isShared ? min(rows, 1) : rows) { json, row in write(&json, value(row)) }
    }

    /// Writes an array with one element a row.
    @inline(__always)
    mutating func list(of rows: Int, _ write: (inout ByteWriter, Int) -> Void) {
        put("[")
        for row in 0..<rows {
            if row > 0 { put(",") }
            write(&self, row)
        }
        put("]")
    }
}
