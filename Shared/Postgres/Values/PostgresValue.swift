/// A value that can be bound to a statement and decoded from a column: a scalar, an array of scalars, or an optional of
/// either. Encoded in the server's binary format (`typreceive` and `typsend`).
package protocol PostgresValue: Sendable {
    /// The type of a parameter. Cast in the statement to other types: `\(name)::citext`.
    static var postgresType: PostgresType { get }

    /// Appends the binary form to `buffer`, or returns `false` and appends nothing for NULL.
    func encode(to buffer: inout [UInt8]) -> Bool

    /// Decodes a column or an array element.
    static func decode(_ cell: PostgresCell) throws(PostgresMismatch) -> Self
}

/// A value that can be an element of an array.
package protocol PostgresElement: PostgresValue {
    static var postgresArrayType: PostgresType { get }
    static func encodeArray(_ elements: [Self], to buffer: inout [UInt8])
    static func decodeArray(_ cell: PostgresCell) throws(PostgresMismatch) -> [Self]
}

/// An encoded value from the server: its type and its bytes; no bytes for NULL.
package struct PostgresCell: Sendable {
    let oid: UInt32
    let bytes: ArraySlice<UInt8>?
}

/// A decoding error of a cell; the row adds the column.
package struct PostgresMismatch: Error {
    let expected: String
    let found: String

    static func type(_ cell: PostgresCell, expected: String) -> PostgresMismatch {
        PostgresMismatch(expected: expected, found: PostgresOID.describe(cell.oid))
    }

    static func form(_ cell: PostgresCell, expected: String, _ problem: String) -> PostgresMismatch {
        PostgresMismatch(expected: expected, found: "\(PostgresOID.describe(cell.oid)) \(problem)")
    }
}

extension PostgresCell {
    func required(for expected: String) throws(PostgresMismatch) -> ArraySlice<UInt8> {
        guard let bytes else { throw PostgresMismatch(expected: expected, found: "NULL") }
        return bytes
    }

    /// Decodes a big-endian integer of exactly the value's size.
    func integer<I: FixedWidthInteger>(_: I.Type, for expected: String) throws(PostgresMismatch) -> I {
        let bytes = try required(for: expected)
        guard bytes.count == MemoryLayout<I>.size else {
            throw .form(self, expected: expected, "of \(bytes.count) bytes")
        }
        return bytes.bigEndian(I.self)
    }
}

extension ArraySlice<UInt8> {
    func bigEndian<I: FixedWidthInteger>(_: I.Type) -> I {
        var value: I = 0
        for byte in prefix(MemoryLayout<I>.size) { value = value << 8 | I(truncatingIfNeeded: byte) }
        return value
    }

    /// Removes a big-endian integer from the front; returns `nil` if there are too few bytes.
    mutating func takeBigEndian<I: FixedWidthInteger>(_: I.Type) -> I? {
        guard count >= MemoryLayout<I>.size else { return nil }
        defer { removeFirst(MemoryLayout<I>.size) }
        return bigEndian(I.self)
    }
}

extension [UInt8] {
    mutating func append(bigEndian value: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: value.bigEndian) { append(contentsOf: $0) }
    }
}

extension Optional: PostgresValue where Wrapped: PostgresValue {
    package static var postgresType: PostgresType { Wrapped.postgresType }

    package func encode(to buffer: inout [UInt8]) -> Bool {
        switch self {
        case .some(let value): value.encode(to: &buffer)
        case .none: false
        }
    }

    package static func decode(_ cell: PostgresCell) throws(PostgresMismatch) -> Wrapped? {
        cell.bytes == nil ? nil : try Wrapped.decode(cell)
    }
}

extension PostgresValue where Self: RawRepresentable, RawValue: PostgresValue {
    package static var postgresType: PostgresType { RawValue.postgresType }

    package func encode(to buffer: inout [UInt8]) -> Bool { rawValue.encode(to: &buffer) }

    package static func decode(_ cell: PostgresCell) throws(PostgresMismatch) -> Self {
        let raw = try RawValue.decode(cell)
        guard let value = Self(rawValue: raw) else {
            throw .form(cell, expected: "\(Self.self)", "that is not one of its values")
        }
        return value
    }
}
