import FoundationEssentials
@testable import Postgres

extension FuzzTarget {
    /// A type and a value in the binary format of results.
    static let postgresCells = FuzzTarget("postgres-cells") {
        var array: [UInt8] = [0]
        _ = [Int64?](arrayLiteral: 1, nil, .max).encode(to: &array)
        return [
            array, [1, 0, 2, 0, 1, 0, 0, 0, 2, 0, 1, 4, 210, 22, 46],
            [2, 0, 0, 0, 0, 0, 0, 0, 1], [3] + Array("text".utf8),
        ]
    } read: { input in
        var input = FuzzInput(input)
        let kind = input.byte()
        let types: [UInt32] = [
            PostgresType.int8.array.oid, PostgresOID.numeric, PostgresType.timestamptz.oid, PostgresType.text.oid,
            PostgresType.text.array.oid, PostgresType.bytea.oid, PostgresType.float8.oid, PostgresType.uuid.oid,
            PostgresType.interval.oid,
            PostgresType.bool.oid, PostgresType.int4.oid, PostgresType.int2.oid, PostgresType.jsonb.oid,
        ]
        let cell = PostgresCell(oid: types[Int(kind) % types.count], bytes: input.rest)
        _ = try? [Int64?].decode(cell)
        _ = try? [String].decode(cell)
        _ = try? [UUID?].decode(cell)
        _ = try? [UInt8].decode(cell)
        _ = try? [Double].decode(cell)
        _ = try? Int64.decode(cell)
        _ = try? Double.decode(cell)
        _ = try? Date.decode(cell)
        _ = try? Duration.decode(cell)
        _ = try? String.decode(cell)
        _ = try? Bool.decode(cell)
        _ = try? UUID.decode(cell)
    }
}
