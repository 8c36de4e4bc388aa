import FoundationEssentials
import Testing
import TestSupport

@testable import Postgres

private enum Mood: String, PostgresElement {
    case sunny, grim
}

/// Texts that could break out of a string literal, an array literal or a COPY line.
private let hostileTexts = [
    "", " ", "'", "''", "\"", "\\", "\\'", "\\\\", "$1", "$$", "%s", ";", "--", "/*", "NULL", "null", "{}", "{a,b}",
    "a,b", "\t\n\r", "x'); DROP TABLE t; --", "\u{1}", "é", "e\u{301}", "👩‍👩‍👧‍👦", "\u{202E}", "\u{FEFF}", "日本語",
]

@Suite(.timeLimit(.minutes(2)), .enabled(if: TestDatabase.isAvailable)) struct RoundTripTests {
    private func same<Value: PostgresValue & Equatable>(_ values: Value..., in pool: PostgresPool) async throws {
        for value in values {
            let back = try await pool.query("SELECT \(value) AS value").single(Value.self)
            #expect(back == value)
            let nothing: Value? = nil
            #expect(try await pool.query("SELECT \(nothing)").single(Value?.self) == nil)
        }
    }

    @Test func `every scalar round-trips`() async throws {
        try await TestDatabase.withPool { pool in
            try await same(true, false, in: pool)
            try await same(0, .min, .max, in: pool)
            try await same(Int64.min, .max, in: pool)
            try await same(Int32.min, .max, in: pool)
            try await same(Int16.min, .max, in: pool)
            try await same(0.0, -0.0, 0.1, .infinity, -.infinity, .leastNonzeroMagnitude, in: pool)
            #expect(try await pool.query("SELECT \(Double.nan)").single(Double.self).isNaN)
            try await same(UUID(), in: pool)
            try await same([UInt8](), [0], Array(0...255), in: pool)
            try await same(Duration.zero, .microseconds(1), .seconds(-86_401), in: pool)
            try await same(Mood.sunny, in: pool)
            try await same(JSONB(#"{"a": [1, "\"", null]}"#), in: pool)
            let dates = [0, 0.000001, 1_700_000_000.123456, -62_135_596_800, 253_402_300_799]
            for seconds in dates { try await same(Date(timeIntervalSince1970: seconds), in: pool) }
            try await same(Date.distantPast, in: pool)
        }
    }

    @Test func `every hostile text round-trips alone, in an array, in JSON, and stored`() async throws {
        try await TestDatabase.withPool { pool in
            for text in hostileTexts { try await same(text, in: pool) }
            try await same(hostileTexts, in: pool)
            try await same(hostileTexts.map { Optional($0) } + [nil], in: pool)
            try await same(hostileTexts.map { Array($0.utf8) }, in: pool)
            try await pool.execute("CREATE TABLE t (n int8, a text UNIQUE, b varchar, c char(40), d bytea)")
            for (n, text) in hostileTexts.enumerated() {
                try await pool.execute("INSERT INTO t VALUES (\(n), \(text), \(text), \(text), \(Array(text.utf8)))")
                let row = try #require(try await pool.query("SELECT n, b, d FROM t WHERE a = \(text)").first)
                #expect(try row.decode(Int.self, at: "n") == n)
                #expect(try row.decode(String.self, at: "b") == text)
                #expect(try row.decode([UInt8].self, at: "d") == Array(text.utf8))
            }
            #expect(try await pool.query("SELECT count(*) FROM t").single(Int.self) == hostileTexts.count)
        }
    }

    @Test func `every array round-trips, with and without NULLs, and empty`() async throws {
        try await TestDatabase.withPool { pool in
            try await same([Int](), [1, -1, .max], in: pool)
            try await same([1, nil, 3], [nil], [Int?](), in: pool)
            try await same([Int32](), [1], in: pool)
            try await same([true, false], [Bool](), in: pool)
            try await same([true, nil], in: pool)
            try await same([UUID](), [UUID(), UUID()], in: pool)
            try await same([UUID(), nil], in: pool)
            try await same([0.5, -1], in: pool)
            try await same([[UInt8]](), [[], [0], [1, 2, 3]], in: pool)
            try await same([[1], nil, []] as [[UInt8]?], in: pool)
            try await same([Date(timeIntervalSince1970: 1.5)], in: pool)
            try await same([JSONB("[]"), JSONB("null")], in: pool)
            try await same([Mood.sunny, .grim], in: pool)
            try await same([Duration.seconds(1)], in: pool)
        }
    }

    @Test(arguments: [
        "0", "1", "-1", "10000", "9223372036854775807", "-9223372036854775808", "120000000", "99990001",
    ])
    func `a numeric without fraction decodes to an integer`(text: String) async throws {
        try await TestDatabase.withPool { pool in
            let rows = try await pool.query("SELECT \(text)::numeric")
            #expect(try rows.single(Int.self) == Int(text))
            #expect(try rows.single(Double.self) == Double(text))
        }
    }

    @Test func `a numeric with fraction decodes to the nearest double, and not to an integer`() async throws {
        try await TestDatabase.withPool { pool in
            for text in ["0.1", "-123456.7890123", "1e-20", "3.333333333333333333", "1e200", "0.00010001"] {
                let rows = try await pool.query("SELECT \(text)::numeric")
                #expect(try rows.single(Double.self) == Double(text))
                #expect(throws: PostgresError.self) { try rows.single(Int.self) }
            }
            let beyond = try await pool.query("SELECT 9223372036854775808")
            #expect(throws: PostgresError.self) { try beyond.single(Int.self) }
            #expect(try await pool.query("SELECT 'NaN'::numeric").single(Double.self).isNaN)
            #expect(try await pool.query("SELECT sum(n) FROM generate_series(1, 4) n").single(Int.self) == 10)
        }
    }

    @Test func `infinite timestamps decode to distant dates`() async throws {
        try await TestDatabase.withPool { pool async throws in
            #expect(try await pool.query("SELECT 'infinity'::timestamptz").single(Date.self) == .distantFuture)
            #expect(try await pool.query("SELECT '-infinity'::timestamptz").single(Date.self) == .distantPast)
            let never = Date(timeIntervalSince1970: .infinity)
            #expect(try await pool.query("SELECT \(never) = 'infinity'").single(Bool.self))
        }
    }

    @Test func `a text with NUL is rejected by the server, not truncated`() async throws {
        try await TestDatabase.withPool { pool in
            let error = await #expect(throws: PostgresError.self) { try await pool.query("SELECT \("a\0b")") }
            #expect(error?.code == .sqlState("22021"))
        }
    }
}
