/// A value that can be bound to a statement and read from a column: a scalar, an array of scalars, or an optional of
/// either. Both ways it travels in the server's binary format (`typreceive` and `typsend`), never as SQL text.
package protocol PostgresValue: Sendable {
    /// What a parameter of this type is declared as. Where the server wants another, cast in the statement:
    /// `\(name)::citext`.
    static var postgresType: PostgresType { get }

    /// Appends the binary form to `buffer`, or returns `false` and appends nothing for NULL.
    func encode(to buffer: inout [UInt8]) -> Bool

    /// Reads a column or an element.
    static func decode(_ cell: PostgresCell) throws(PostgresMismatch) -> Self
}

/// A value that can be an element of an array.
package protocol PostgresElement: PostgresValue {
    static var postgresArrayType: PostgresType { get }
    static func encodeArray(_ elements: [Self], to buffer: inout [UInt8])
    static func decodeArray(_ cell: PostgresCell) throws(PostgresMismatch) -> [Self]
}

/// One value as the server sent it: its type and its bytes, none for NULL.
package struct PostgresCell: Sendable {
    let oid: UInt32
    let bytes: ArraySlice<UInt8>?
}

/// Why a cell cannot be read as a type; the row adds which column it was.
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
    /// The bytes of a value that must not be NULL.
    func required(for expected: String) throws(PostgresMismatch) -> ArraySlice<UInt8> {
        guard let bytes else { throw PostgresMismatch(expected: expected, found: "NULL") }
        return bytes
    }

    /// A big-endian integer that must fill the value.
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

    /// Takes a big-endian integer off the front; `nil` when there is not enough left.
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
