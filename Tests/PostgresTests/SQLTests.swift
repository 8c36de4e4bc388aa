import Testing

@testable import Postgres

@Suite struct SQLTests {
    @Test func `an interpolated value becomes a numbered parameter`() {
        let sql: SQL = "SELECT \(1) WHERE a = \("x") AND b = \(true)"
        let (text, parameters) = sql.rendered()
        #expect(text == "SELECT $1 WHERE a = $2 AND b = $3")
        #expect(parameters.map(\.oid) == [20, 25, 16])
        #expect(parameters[1].bytes == Array("x".utf8))
    }

    @Test func `an interpolated statement keeps its parameters bound and in order`() {
        let onlyActive: SQL = "AND status = \(Int16(0))"
        let (text, parameters) = ("WHERE user = \("u") \(onlyActive) LIMIT \(5)" as SQL).rendered()
        #expect(text == "WHERE user = $1 AND status = $2 LIMIT $3")
        #expect(parameters.map(\.oid) == [25, 21, 20])
    }

    @Test func `nil is NULL and keeps its type`() {
        let nothing: Int? = nil
        let (text, parameters) = ("SELECT \(nothing)" as SQL).rendered()
        #expect(text == "SELECT $1")
        #expect(parameters.map(\.oid) == [20])
        #expect(parameters[0].bytes == nil)
    }

    @Test func `identifiers are always quoted`() {
        let name = #"a"; DROP TABLE device; --"#
        #expect(("TABLE \(identifier: name)" as SQL).rendered().text == #"TABLE "a""; DROP TABLE device; --""#)
    }

    @Test func `an empty value is not NULL`() {
        let parameters = ("\("") \([UInt8]()) \([Int]())" as SQL).rendered().parameters
        #expect(parameters[0].bytes == [])
        #expect(parameters[1].bytes == [])
        // No dimensions, no NULLs, element type int8.
        #expect(parameters[2].bytes == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20])
    }
}
