import Foundation
import Testing
import TestSupport

@testable import Postgres

private struct Refused: Error {}

@Suite(.timeLimit(.minutes(3)), .enabled(if: TestDatabase.isAvailable)) struct CopyTests {
    private func withTable(
        statementTimeout: Duration = .seconds(5), _ body: (PostgresPool) async throws -> Void
    ) async throws {
        try await TestDatabase.withPool(statementTimeout: statementTimeout) { pool in
            try await pool.execute("CREATE TABLE t (id int8 PRIMARY KEY, name text CHECK (name <> 'no'))")
            try await body(pool)
        }
    }

    private func count(_ pool: PostgresPool) async throws -> Int {
        try await pool.query("SELECT count(*) FROM t").single()
    }

    /// Returns batches of `size` rows with ids from 1 to `total`.
    private static func batches(of size: Int, total: Int) -> () -> CopyRows? {
        var next = 1
        return {
            guard next <= total else { return nil }
            var rows = CopyRows()
            for _ in 0..<min(size, total - next + 1) {
                rows.append(next, "row \(next)")
                next += 1
            }
            return rows
        }
    }

    @Test func `values of all types are copied unchanged`() async throws {
        try await TestDatabase.withPool { pool in
            try await pool.execute(
                """
                CREATE TABLE v (a bool, b bytea, c int8, d int4, e text, f timestamptz, g uuid, h text[], i interval,
                    j float8, k text)
                """)
            let (moment, id) = (Date(timeIntervalSince1970: 1_700_000_000.25), UUID())
            try await pool.transaction { transaction in
                var rows: CopyRows? = CopyRows()
                rows?.append(
                    true, [UInt8]([0, 255, 10]), 1 << 40, Int32(-7), "é\t\\.\n\"", moment, id, ["a", "", "b"],
                    Duration.seconds(3), 0.5, String?.none)
                rows?.append(
                    false, [UInt8](), -1, Int32(0), "", moment, id, [String](), Duration.zero, -0.0, String?.some("x"))
                let copied = try await transaction.copy(into: "v") {
                    defer { rows = nil }
                    return rows
                }
                #expect(copied == 2)
            }
            let row = try #require(try await pool.query("SELECT * FROM v WHERE a").first)
            #expect(try row.decode([UInt8].self, at: "b") == [0, 255, 10])
            #expect(try row.decode(Int.self, at: "c") == 1 << 40)
            #expect(try row.decode(Int.self, at: "d") == -7)
            #expect(try row.decode(String.self, at: "e") == "é\t\\.\n\"")
            #expect(try row.decode(Date.self, at: "f") == moment)
            #expect(try row.decode(UUID.self, at: "g") == id)
            #expect(try row.decode([String].self, at: "h") == ["a", "", "b"])
            #expect(try row.decode(Duration.self, at: "i") == .seconds(3))
            #expect(try row.decode(Double.self, at: "j") == 0.5)
            #expect(try row.decode(String?.self, at: "k") == nil)
            #expect(try await pool.query("SELECT e = '' AND k = 'x' FROM v WHERE NOT a").single(Bool.self))
        }
    }

    @Test func `hundreds of thousands of rows are copied in batches`() async throws {
        try await withTable { pool in
            let copied = try await pool.transaction { transaction in
                try await transaction.copy(into: "t (id, name)", rows: Self.batches(of: 1000, total: 200_000))
            }
            #expect(copied == 200_000)
            var (lines, largest, isWhole) = (0, 0, true)
            let text = try await pool.transaction { transaction in
                var (lines, largest, isWhole) = (0, 0, true)
                let copied = try await transaction.copy(
                    "SELECT id, name FROM t ORDER BY id", as: "FORMAT csv"
                ) { rows in
                    largest = max(largest, rows.count)
                    isWhole = isWhole && rows.last == UInt8(ascii: "\n")
                    for row in rows.split(separator: UInt8(ascii: "\n")) {
                        lines += 1
                        if !row.elementsEqual("\(lines),row \(lines)".utf8) { isWhole = false }
                    }
                }
                return (copied, lines, largest, isWhole)
            }
            #expect(text.0 == 200_000)
            (lines, largest, isWhole) = (text.1, text.2, text.3)
            #expect(lines == 200_000 && largest < 128 << 10 && isWhole)
        }
    }

    @Test func `an empty COPY copies no rows`() async throws {
        try await withTable { pool in
            let copied = try await pool.transaction { transaction in
                let copiedIn = try await transaction.copy(into: "t") { nil }
                let copiedOut = try await transaction.copy("SELECT * FROM t", as: "FORMAT csv") { rows in
                    #expect(rows.isEmpty)
                }
                return copiedIn + copiedOut
            }
            #expect(copied == 0)
        }
    }

    @Test func `an error names the row without its values`() async throws {
        try await withTable { pool async throws in
            let offences: [(Int, String, String)] = [
                (3, "no", "23514"), (2, "again", "23505"), (4, "nul \u{0}", "22021"),
            ]
            for (id, name, state) in offences {
                let error = await #expect(throws: PostgresError.self) {
                    try await pool.transaction { transaction in
                        var rows: CopyRows? = CopyRows()
                        rows?.append(1, "secret-1")
                        rows?.append(2, "secret-2")
                        rows?.append(id, "\(name)")
                        try await transaction.copy(into: "t (id, name)") {
                            defer { rows = nil }
                            return rows
                        }
                    }
                }
                #expect(error?.code == .sqlState(state))
                let text = error.map { "\($0)" } ?? ""
                #expect(text.contains("row 3"), "\(text)")
                #expect(!text.contains("secret") && !text.contains(name), "\(text)")
            }
            #expect(try await count(pool) == 0)
        }
    }

    @Test func `an error of the source aborts the COPY, and the connection stays usable`() async throws {
        try await withTable { pool async throws in
            let process = try await pool.query("SELECT pg_backend_pid()").single(Int.self)
            await #expect(throws: Refused.self) {
                try await pool.transaction { transaction in
                    var next = Self.batches(of: 10, total: 20)
                    try await transaction.copy(into: "t (id, name)") {
                        defer { next = { nil } }
                        guard let rows = next() else { throw Refused() }
                        return rows
                    }
                }
            }
            #expect(try await count(pool) == 0)
            #expect(try await pool.query("SELECT pg_backend_pid()").single(Int.self) == process)
        }
    }

    @Test func `an aborted COPY cannot be committed`() async throws {
        try await withTable { pool async throws in
            let error = await #expect(throws: PostgresError.self) {
                try await pool.transaction { transaction in
                    _ = try? await transaction.copy(into: "t (id, name)") { throw Refused() }
                }
            }
            #expect(error?.code == .transactionAborted)
        }
    }

    @Test func `a receiver may stop a COPY early`() async throws {
        try await withTable { pool async throws in
            await #expect(throws: Refused.self) {
                try await pool.transaction { transaction in
                    _ = try await transaction.copy(
                        "SELECT generate_series(1, 1000000000)", as: "FORMAT csv"
                    ) { _ in throw Refused() }
                }
            }
            #expect(try await count(pool) == 0)
        }
    }

    @Test func `cancelling a task aborts a COPY in either direction`() async throws {
        try await withTable { pool async throws in
            let copied = Counter()
            let copying = Task {
                try await pool.transaction { transaction in
                    var id = 0
                    try await transaction.copy(into: "t (id, name)") {
                        var rows = CopyRows()
                        id += 1
                        rows.append(id, "x")
                        copied.increment()
                        return rows
                    }
                }
            }
            let reading = Task {
                try await pool.transaction { transaction in
                    _ = try await transaction.copy(
                        "SELECT generate_series(1, 1000000000)", as: "FORMAT csv"
                    ) { _ in copied.increment() }
                }
            }
            try await eventually("rows to flow") { copied.value > 10 }
            for task in [copying, reading] {
                task.cancel()
                let error = await #expect(throws: PostgresError.self) { try await task.value }
                #expect(error?.code == .cancelled)
            }
            #expect(try await count(pool) == 0)
        }
    }

    @Test func `no other statement runs during a COPY`() async throws {
        try await withTable { pool async throws in
            let error = await #expect(throws: PostgresError.self) {
                try await pool.transaction { transaction in
                    try await transaction.copy(into: "t (id, name)") {
                        try await transaction.execute("SELECT 1")
                        return nil
                    }
                }
            }
            #expect(error?.code == .copying)
        }
    }

    @Test func `a statement other than a COPY in this direction is an error`() async throws {
        try await withTable { pool async throws in
            let error = await #expect(throws: PostgresError.self) {
                try await pool.transaction { transaction in try await transaction.copy(into: "nowhere") { nil } }
            }
            #expect(error?.code == .sqlState("42P01"))
            let stray = await #expect(throws: PostgresError.self) { try await pool.execute("COPY t TO STDOUT") }
            #expect(stray?.code == .connectionLost)
            #expect(try await count(pool) == 0)
        }
    }

    @Test func `a COPY may last longer than the statement time-out, and later statements may not`() async throws {
        try await withTable(statementTimeout: .seconds(2)) { pool async throws in
            let error = await #expect(throws: PostgresError.self) {
                try await pool.transaction { transaction in
                    // Each row is larger than the server's output buffer, so it arrives in its own step.
                    let rows = try await transaction.copy(
                        "SELECT repeat('x', 20000), pg_sleep(0.1) FROM generate_series(1, 30)", as: "FORMAT csv"
                    ) { _ in }
                    #expect(rows == 30)
                    try await transaction.execute("SELECT pg_sleep(60)")
                }
            }
            #expect(error?.code == .sqlState("57014"))
        }
    }

    @Test func `a server lost during a COPY is an outage`() async throws {
        try await withTable { pool async throws in
            let error = await #expect(throws: PostgresError.self) {
                try await pool.transaction { transaction in
                    let process = try await transaction.query("SELECT pg_backend_pid()").single(Int.self)
                    var id = 0
                    try await transaction.copy(into: "t (id, name)") {
                        if id == 0 { try await pool.execute("SELECT pg_terminate_backend(\(Int32(process)))") }
                        var rows = CopyRows()
                        for _ in 0..<1000 {
                            id += 1
                            rows.append(id, "a name")
                        }
                        return rows
                    }
                }
            }
            #expect(error?.isOutage == true)
            #expect(try await count(pool) == 0)
        }
    }
}
