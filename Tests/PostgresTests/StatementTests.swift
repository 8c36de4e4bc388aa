import FoundationEssentials
import Logging
import Testing
import TestSupport

@testable import Postgres

@Suite(.timeLimit(.minutes(2)), .enabled(if: TestDatabase.isAvailable)) struct StatementTests {
    @Test func `a batch of a thousand rows is one statement`() async throws {
        try await TestDatabase.withPool { pool in
            try await pool.execute("CREATE TABLE t (id uuid PRIMARY KEY, name text, token bytea, seen timestamptz)")
            let ids = (0..<1_000).map { _ in UUID() }
            let names = ids.indices.map { $0.isMultiple(of: 7) ? nil : "it's \"\($0)\" \\" }
            let tokens = ids.indices.map { [UInt8](repeating: UInt8($0 % 256), count: 32) }
            let seen = ids.indices.map { Date(timeIntervalSince1970: Double($0)) }
            let affected = try await pool.execute(
                """
                INSERT INTO t SELECT * FROM unnest(\(ids), \(names), \(tokens), \(seen))
                ON CONFLICT (id) DO NOTHING
                """)
            #expect(affected == 1_000)
            let rows = try await pool.query(
                "SELECT name, token FROM unnest(\(ids)) WITH ORDINALITY AS wanted (id, n) JOIN t USING (id) ORDER BY n")
            #expect(rows.count == 1_000)
            for (index, row) in rows.enumerated() {
                #expect(try row.decode(String?.self, at: "name") == names[index])
                #expect(try row.decode([UInt8].self, at: "token") == tokens[index])
            }
        }
    }

    @Test func `affected rows are counted`() async throws {
        try await TestDatabase.withPool { pool async throws in
            #expect(try await pool.execute("CREATE TABLE t (n int8)") == 0)
            #expect(try await pool.execute("INSERT INTO t SELECT generate_series(1, 5)") == 5)
            #expect(try await pool.execute("UPDATE t SET n = n + \(1) WHERE n > \(2)") == 3)
            #expect(try await pool.execute("DELETE FROM t WHERE false") == 0)
        }
    }

    @Test func `a statement is prepared once for each connection`() async throws {
        try await TestDatabase.withPool(poolSize: 1) { pool in
            for n in 1...3 { #expect(try await pool.query("SELECT \(n) + 40").single(Int.self) == n + 40) }
            let prepared = try await pool.query(
                "SELECT count(*) FROM pg_prepared_statements WHERE statement = 'SELECT $1 + 40'"
            ).single(Int.self)
            #expect(prepared == 1)
        }
    }

    @Test func `one text with two parameter types makes two statements`() async throws {
        func echo(_ value: some PostgresValue) -> SQL { "SELECT \(value)" }
        try await TestDatabase.withPool(poolSize: 1) { pool async throws in
            #expect(try await pool.query(echo(1)).single(Int.self) == 1)
            #expect(try await pool.query(echo("one")).single(String.self) == "one")
            #expect(try await pool.query(echo(2)).single(Int.self) == 2)
        }
    }

    @Test func `too many statements are deallocated and prepared again`() async throws {
        try await TestDatabase.withPool(poolSize: 1) { pool in
            for n in 0..<(PreparedStatements.limit + 10) {
                _ = try await pool.query("SELECT 1 AS \(identifier: "c\(n)")")
            }
            let kept = try await pool.query("SELECT count(*) FROM pg_prepared_statements").single(Int.self)
            #expect(kept < 20)
            #expect(try await pool.query("SELECT 1 AS \(identifier: "c0")").single(Int.self) == 1)
        }
    }

    @Test func `a prepared statement survives a change of its tables`() async throws {
        try await TestDatabase.withPool(poolSize: 1) { pool in
            try await pool.execute("CREATE TABLE t (a int8)")
            try await pool.execute("INSERT INTO t VALUES (1)")
            func all() async throws -> [PostgresRow] { try await pool.query("SELECT * FROM t") }
            #expect(try await all().first?.columnNames == ["a"])
            try await pool.execute("ALTER TABLE t ADD b int8")
            #expect(try await all().first?.columnNames == ["a", "b"])
            try await pool.execute("ALTER TABLE t DROP b")
            let inTransaction = try await pool.transaction { try await $0.query("SELECT * FROM t").first?.columnNames }
            #expect(inTransaction == ["a"])
        }
    }

    @Test func `prepared statements discarded on the server are prepared again`() async throws {
        try await TestDatabase.withPool(poolSize: 1) { pool in
            #expect(try await pool.query("SELECT \(1)").single(Int.self) == 1)
            try await pool.execute("DEALLOCATE ALL")
            #expect(try await pool.query("SELECT \(2)").single(Int.self) == 2)
        }
    }

    @Test func `large values round-trip`() async throws {
        try await TestDatabase.withPool { pool async throws in
            let blob = [UInt8](repeating: 0xAB, count: 8 << 20)
            #expect(try await pool.query("SELECT \(blob)").single([UInt8].self) == blob)
        }
    }

    @Test func `notices are logged at level debug`() async throws {
        let log = CapturingLogger()
        let configuration = try PostgresConfiguration(url: try TestDatabase.serverURL, applicationName: "tests")
        let connection = PostgresConnection(configuration: configuration, logger: log.logger)
        try await connection.open()
        _ = try await connection.run(script: "DO $$ BEGIN RAISE NOTICE 'psst'; END $$", operation: "notice")
        await connection.close()
        #expect(log.lines.contains { $0.level == .debug && $0.metadata["notice"] == "psst" })
    }
}
