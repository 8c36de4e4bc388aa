// The format of `array_send`: number of dimensions, NULL flag, element type; length and lower bound of each dimension;
// then each element with its length, -1 for NULL. An empty array has 0 dimensions.

extension PostgresElement {
    package static var postgresArrayType: PostgresType { postgresType.array }

    package static func encodeArray(_ elements: [Self], to buffer: inout [UInt8]) {
        buffer.append(bigEndian: Int32(elements.isEmpty ? 0 : 1))
        let flags = buffer.count
        buffer.append(bigEndian: Int32(0))
        buffer.append(bigEndian: postgresType.oid)
        if elements.isEmpty { return }
        buffer.append(bigEndian: Int32(elements.count))
        buffer.append(bigEndian: Int32(1))
        for element in elements {
            let header = buffer.count
            buffer.append(bigEndian: Int32(-1))
            if element.encode(to: &buffer) {
                buffer.replace(bigEndian: Int32(buffer.count - header - 4), at: header)
            } else {
                buffer.replace(bigEndian: Int32(1), at: flags)
            }
        }
    }

    package static func decodeArray(_ cell: PostgresCell) throws(PostgresMismatch) -> [Self] {
        let expected = postgresArrayType.name
        var bytes = try cell.required(for: expected)
        guard let dimensions = bytes.takeBigEndian(Int32.self), bytes.takeBigEndian(Int32.self) != nil,
            let elementOID = bytes.takeBigEndian(UInt32.self)
        else { throw .type(cell, expected: expected) }
        if dimensions == 0 { return [] }
        guard dimensions == 1, let count = bytes.takeBigEndian(Int32.self), bytes.takeBigEndian(Int32.self) != nil
        else { throw .form(cell, expected: expected, "of \(dimensions) dimensions") }
        guard count >= 0 else { throw .form(cell, expected: expected, "of \(count) elements") }
        var elements: [Self] = []
        elements.reserveCapacity(min(Int(count), bytes.count / 4))
        for _ in 0..<count {
            guard let length = bytes.takeBigEndian(Int32.self), Int(length) <= bytes.count else {
                throw .form(cell, expected: expected, "cut short")
            }
            let element = length < 0 ? nil : bytes.prefix(Int(length))
            elements.append(try Self.decode(PostgresCell(oid: elementOID, bytes: element)))
            bytes.removeFirst(max(0, Int(length)))
        }
        return elements
    }
}

extension [UInt8] {
    mutating func replace(bigEndian value: some FixedWidthInteger, at offset: Int) {
        Swift.withUnsafeBytes(of: value.bigEndian) { replaceSubrange(offset..<offset + $0.count, with: $0) }
    }
}

extension Optional: PostgresElement where Wrapped: PostgresElement {}

extension Array: PostgresValue where Element: PostgresElement {
    package static var postgresType: PostgresType { Element.postgresArrayType }

    package func encode(to buffer: inout [UInt8]) -> Bool {
        Element.encodeArray(self, to: &buffer)
        return true
    }

    package static func decode(_ cell: PostgresCell) throws(PostgresMismatch) -> [Element] {
        try Element.decodeArray(cell)
    }
}

/// `[UInt8]` is `bytea`, not an array.
extension UInt8: PostgresElement {
    package static var postgresType: PostgresType { .int2 }
    package static var postgresArrayType: PostgresType { .bytea }

    package func encode(to buffer: inout [UInt8]) -> Bool { Int16(self).encode(to: &buffer) }

    package static func decode(_ cell: PostgresCell) throws(PostgresMismatch) -> UInt8 {
        guard let value = UInt8(exactly: try Int64.decode(cell)) else {
            throw .form(cell, expected: "an integer from 0 to 255", "out of that range")
        }
        return value
    }

    package static func encodeArray(_ elements: [UInt8], to buffer: inout [UInt8]) {
        buffer.append(contentsOf: elements)
    }

    package static func decodeArray(_ cell: PostgresCell) throws(PostgresMismatch) -> [UInt8] {
        guard cell.oid == PostgresType.bytea.oid else { throw .type(cell, expected: "bytea") }
        return Array(try cell.required(for: "bytea"))
    }
}

/// `[[UInt8]]` is `bytea[]`.
extension Array: PostgresElement where Element == UInt8 {}
