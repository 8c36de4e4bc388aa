import FoundationEssentials
import Testing
import TestSupport

@testable import Postgres

@Suite(.timeLimit(.minutes(2)), .enabled(if: TestDatabase.isAvailable)) struct DecodingTests {
    private func failure<Value: PostgresValue>(
        _ sql: SQL, as type: Value.Type, at column: String, in pool: PostgresPool
    ) async throws -> String {
        let row = try #require(try await pool.query(sql).first)
        let error = #expect(throws: PostgresError.self) { try row.decode(type, at: column) }
        #expect(error?.code == .decoding)
        return error?.detail ?? ""
    }

    @Test func `an error names the column, the expected type and the one found, never the value`() async throws {
        try await TestDatabase.withPool { pool in
            let wrong = try await failure("SELECT 'sesame' AS id", as: UUID.self, at: "id", in: pool)
            #expect(wrong == "column “id” of row 0: expected uuid, found text")
            let null = try await failure("SELECT \(nil as Int?) AS n", as: Int.self, at: "n", in: pool)
            #expect(null == "column “n” of row 0: expected int8, found NULL")
            let missing = try await failure("SELECT 1 AS a, 2 AS b", as: Int.self, at: "c", in: pool)
            #expect(missing == "there is no column “c”; the columns are a, b")
            let array = try await failure("SELECT '{1,NULL}'::int8[] AS a", as: [Int].self, at: "a", in: pool)
            #expect(array == "column “a” of row 0: expected int8, found NULL")
            let nested = try await failure("SELECT '{{1},{2}}'::int8[] AS a", as: [Int].self, at: "a", in: pool)
            #expect(nested == "column “a” of row 0: expected int8[], found int8[] of 2 dimensions")
            let day = try await failure("SELECT current_date AS d", as: Date.self, at: "d", in: pool)
            #expect(day == "column “d” of row 0: expected timestamptz, found date")
            let months = try await failure("SELECT '1 month'::interval AS i", as: Duration.self, at: "i", in: pool)
            #expect(months.contains("months"))
        }
    }

    @Test func `all string types decode to String, and small integers to integers`() async throws {
        try await TestDatabase.withPool { pool in
            try await pool.execute("CREATE TYPE mood AS ENUM ('sunny', 'grim')")
            let row = try #require(
                try await pool.query(
                    """
                    SELECT 'a'::varchar AS v, 'b'::char(3) AS c, 'd'::name AS n, '{"x": 1}'::json AS j,
                           \("sunny")::mood AS m, 1::int2 AS i2, 2::int4 AS i4, 3::oid AS o, 1.5::float4 AS f
                    """
                ).first)
            #expect(try row.decode(String.self, at: "v") == "a")
            #expect(try row.decode(String.self, at: "c") == "b  ")
            #expect(try row.decode(String.self, at: "n") == "d")
            #expect(try row.decode(JSONB.self, at: "j") == JSONB(#"{"x": 1}"#))
            #expect(try row.decode(String.self, at: "m") == "sunny")
            #expect(try row.decode(Int.self, at: "i2") == 1)
            #expect(try row.decode(Int.self, at: "i4") == 2)
            #expect(try row.decode(Int.self, at: "o") == 3)
            #expect(try row.decode(Double.self, at: "f") == 1.5)
            #expect(try row.decode(Int16.self, at: "i4") == 2)
            #expect(try row.decode(at: 5) == 1)
        }
    }

    @Test func `server errors contain no parameter values`() async throws {
        try await TestDatabase.withPool { pool in
            try await pool.execute("CREATE TABLE t (a text UNIQUE CHECK (length(a) < 9), b text NOT NULL)")
            try await pool.execute("INSERT INTO t VALUES (\("sesame"), \("x"))")
            let statements: [(SQL, String)] = [
                ("INSERT INTO t VALUES (\("sesame"), \("x"))", "23505"),
                ("INSERT INTO t VALUES (\("sesame, sesame"), \("x"))", "23514"),
                ("INSERT INTO t VALUES (\("sesame1"), \(nil as String?))", "23502"),
                ("SELECT \("sesame")::uuid", "22P02"),
                ("SELECT \("sesame")::timestamptz", "22007"),
                ("SELECT \("{sesame")::jsonb", "22P02"),
                ("SELECT \("sesame")::numeric(3)", "22P02"),
            ]
            for (sql, state) in statements {
                let error = await #expect(throws: PostgresError.self) { try await pool.query(sql) }
                #expect(error?.code == .sqlState(state))
                #expect(error.map { !"\($0)".contains("sesame") } == true)
            }
        }
    }

    @Test func `an error contains the statement and the violated constraint`() async throws {
        try await TestDatabase.withPool { pool in
            try await pool.execute("CREATE TABLE t (a int8 CONSTRAINT small CHECK (a < 9))")
            let error = await #expect(throws: PostgresError.self) {
                try await pool.execute("INSERT INTO t\nVALUES (\(9))")
            }
            #expect(error?.operation == "INSERT INTO t VALUES ($1)")
            #expect(error?.detail.contains("constraint small") == true)
        }
    }
}
