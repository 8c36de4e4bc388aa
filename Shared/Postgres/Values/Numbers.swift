extension Int64: PostgresElement {
    package static var postgresType: PostgresType { .int8 }

    /// Decodes any integer type, and a `numeric` without a fraction: the result type of `sum` over `bigint`.
    package static func decode(_ cell: PostgresCell) throws(PostgresMismatch) -> Int64 {
        switch cell.oid {
        case PostgresType.int8.oid: return try cell.integer(Int64.self, for: "int8")
        case PostgresType.int4.oid: return Int64(try cell.integer(Int32.self, for: "int8"))
        case PostgresType.int2.oid: return Int64(try cell.integer(Int16.self, for: "int8"))
        case PostgresOID.oid: return Int64(try cell.integer(UInt32.self, for: "int8"))
        case PostgresOID.numeric:
            guard let value = try Numeric(cell).integer else {
                throw .form(cell, expected: "int8", "with a fraction or out of range")
            }
            return value
        default: throw .type(cell, expected: "int8")
        }
    }
}

extension Int: PostgresElement {
    package static var postgresType: PostgresType { .int8 }
}

extension PostgresElement where Self: FixedWidthInteger {
    package func encode(to buffer: inout [UInt8]) -> Bool {
        buffer.append(bigEndian: self)
        return true
    }

    package static func decode(_ cell: PostgresCell) throws(PostgresMismatch) -> Self {
        guard let value = Self(exactly: try Int64.decode(cell)) else {
            throw .form(cell, expected: postgresType.name, "out of range")
        }
        return value
    }
}

extension Int32: PostgresElement {
    package static var postgresType: PostgresType { .int4 }
}

extension Int16: PostgresElement {
    package static var postgresType: PostgresType { .int2 }
}

extension Double: PostgresElement {
    package static var postgresType: PostgresType { .float8 }

    package func encode(to buffer: inout [UInt8]) -> Bool {
        buffer.append(bigEndian: bitPattern)
        return true
    }

    /// Decodes both float types, integers, and `numeric`, rounded to the nearest double.
    package static func decode(_ cell: PostgresCell) throws(PostgresMismatch) -> Double {
        switch cell.oid {
        case PostgresType.float8.oid: Double(bitPattern: try cell.integer(UInt64.self, for: "float8"))
        case PostgresOID.float4: Double(Float(bitPattern: try cell.integer(UInt32.self, for: "float8")))
        case PostgresType.int8.oid, PostgresType.int4.oid, PostgresType.int2.oid: Double(try Int64.decode(cell))
        case PostgresOID.numeric: try Numeric(cell).double
        default: throw .type(cell, expected: "float8")
        }
    }
}

extension Bool: PostgresElement {
    package static var postgresType: PostgresType { .bool }

    package func encode(to buffer: inout [UInt8]) -> Bool {
        buffer.append(self ? 1 : 0)
        return true
    }

    package static func decode(_ cell: PostgresCell) throws(PostgresMismatch) -> Bool {
        guard cell.oid == PostgresType.bool.oid else { throw .type(cell, expected: "bool") }
        return try cell.integer(UInt8.self, for: "bool") != 0
    }
}
