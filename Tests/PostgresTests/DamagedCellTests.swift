import Testing

@testable import Postgres

/// Values in the binary format that no correct server sends. Each once ended the process.
struct DamagedCellTests {
    private func array(count: UInt8) -> PostgresCell {
        PostgresCell(
            oid: PostgresType.int8.array.oid,
            bytes: [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 20, count, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0])
    }

    @Test func `an array of a negative length is refused`() {
        #expect(throws: PostgresMismatch.self) { try [Int64].decode(array(count: 0xff)) }
    }

    @Test func `an array longer than its bytes is refused`() {
        #expect(throws: PostgresMismatch.self) { try [Int64].decode(array(count: 0x7f)) }
    }

    @Test(arguments: [[0xff, 0xff], [0x27, 0x10], [0x7f, 0xff]] as [[UInt8]])
    func `a numeric with a digit outside 0 to 9999 is refused`(digit: [UInt8]) {
        let cell = PostgresCell(oid: PostgresOID.numeric, bytes: [0, 1, 0, 0, 0, 0, 0, 0] + digit[...])
        #expect(throws: PostgresMismatch.self) { try Double.decode(cell) }
        #expect(throws: PostgresMismatch.self) { try Int64.decode(cell) }
    }
}
