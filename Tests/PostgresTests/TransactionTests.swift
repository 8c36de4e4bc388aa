import Testing
import TestSupport

@testable import Postgres

private struct Refused: Error {}

@Suite(.timeLimit(.minutes(2)), .enabled(if: TestDatabase.isAvailable)) struct TransactionTests {
    private func withTable(_ body: (PostgresPool) async throws -> Void) async throws {
        try await TestDatabase.withPool { pool in
            try await pool.execute("CREATE TABLE t (id int8 PRIMARY KEY, n int8 NOT NULL)")
            try await pool.execute("INSERT INTO t VALUES (1, 0), (2, 0)")
            try await body(pool)
        }
    }

    private func value(_ id: Int, _ pool: PostgresPool) async throws -> Int {
        try await pool.query("SELECT n FROM t WHERE id = \(id)").single()
    }

    @Test func `statements of the body are committed together`() async throws {
        try await withTable { pool in
            let sum = try await pool.transaction { transaction in
                try await transaction.execute("UPDATE t SET n = 5")
                return try await transaction.query("SELECT sum(n) FROM t").single(Int.self)
            }
            #expect(sum == 10)
            #expect(try await value(1, pool) == 5)
        }
    }

    @Test func `a throwing body is rolled back, and its error rethrown`() async throws {
        try await withTable { pool async throws in
            await #expect(throws: Refused.self) {
                try await pool.transaction { transaction in
                    try await transaction.execute("UPDATE t SET n = 5")
                    throw Refused()
                }
            }
            #expect(try await value(1, pool) == 0)
        }
    }

    @Test func `a body that ignores a failed statement throws transactionAborted`() async throws {
        try await withTable { pool async throws in
            let error = await #expect(throws: PostgresError.self) {
                try await pool.transaction { transaction in
                    try await transaction.execute("UPDATE t SET n = 5")
                    _ = try? await transaction.execute("INSERT INTO t VALUES (1, 1)")
                }
            }
            #expect(error?.code == .transactionAborted)
            #expect(try await value(1, pool) == 0)
        }
    }

    @Test func `two deadlocked transactions both succeed in the end`() async throws {
        try await withTable { pool in
            let (attempts, firstRowsHeld) = (Counter(), Counter())
            @Sendable func update(_ first: Int, _ second: Int) async throws {
                try await pool.transaction { transaction in
                    attempts.increment()
                    // The server detects the deadlock before the lock time-out.
                    try await transaction.execute("SET LOCAL deadlock_timeout = '10ms'")
                    try await transaction.execute("UPDATE t SET n = n + 1 WHERE id = \(first)")
                    firstRowsHeld.increment()
                    try await eventually("both to hold a row") { firstRowsHeld.value >= 2 }
                    try await transaction.execute("UPDATE t SET n = n + 1 WHERE id = \(second)")
                }
            }
            async let forth: Void = update(1, 2)
            async let back: Void = update(2, 1)
            _ = try await (forth, back)
            #expect(try await value(1, pool) == 2)
            #expect(try await value(2, pool) == 2)
            #expect(attempts.value > 2)
        }
    }

    @Test func `conflicting serializable transactions all succeed in the end`() async throws {
        try await withTable { pool in
            let attempts = Counter()
            let reads = Counter()
            @Sendable func increment() async throws {
                try await pool.transaction(isolation: .serializable) { transaction in
                    attempts.increment()
                    let n = try await transaction.query("SELECT n FROM t WHERE id = 1").single(Int.self)
                    reads.increment()
                    try await eventually("both to have read") { reads.value >= 2 }
                    try await transaction.execute("UPDATE t SET n = \(n + 1) WHERE id = 1")
                }
            }
            async let one: Void = increment()
            async let other: Void = increment()
            _ = try await (one, other)
            #expect(try await value(1, pool) == 2)
            #expect(attempts.value > 2)
        }
    }

    @Test func `a permanent failure is rethrown after five retries`() async throws {
        try await withTable { pool in
            let attempts = Counter()
            let error = await #expect(throws: PostgresError.self) {
                try await pool.transaction { transaction in
                    attempts.increment()
                    try await transaction.execute("DO $$ BEGIN RAISE SQLSTATE '40001'; END $$")
                }
            }
            #expect(error?.code == .sqlState("40001"))
            #expect(attempts.value == 6)
        }
    }

    @Test func `a retriable failure wrapped in another error is retried`() async throws {
        try await withTable { pool in
            let attempts = Counter()
            try await pool.transaction { transaction in
                let attempt = attempts.increment()
                guard attempt == 1 else { return }
                do {
                    try await transaction.execute("DO $$ BEGIN RAISE SQLSTATE '40P01'; END $$")
                } catch {
                    throw Refused()
                }
            }
            #expect(attempts.value == 2)
        }
    }

    @Test func `a transaction throws transactionEnded after its body has returned`() async throws {
        try await withTable { pool in
            let leaked = try await pool.transaction { $0 }
            let error = await #expect(throws: PostgresError.self) { try await leaked.execute("UPDATE t SET n = 9") }
            #expect(error?.code == .transactionEnded)
            try await pool.transaction { _ in
                await #expect(throws: PostgresError.self) { try await leaked.execute("UPDATE t SET n = 9") }
            }
            #expect(try await value(1, pool) == 0)
        }
    }

    @Test func `a transaction whose connection is lost is retried once`() async throws {
        try await withTable { pool in
            let attempts = Counter()
            try await pool.transaction { transaction in
                let attempt = attempts.increment()
                try await transaction.execute("UPDATE t SET n = n + 1")
                if attempt == 1 {
                    let pid = try await transaction.query("SELECT pg_backend_pid()").single(Int.self)
                    try await pool.execute("SELECT pg_terminate_backend(\(pid)::int4)")
                }
                try await transaction.execute("UPDATE t SET n = n + 1")
            }
            #expect(try await value(1, pool) == 2)
            #expect(attempts.value == 2)
        }
    }

    @Test func `a connection lost during COMMIT throws commitUnknown without a retry`() async throws {
        try await TestDatabase.withDatabase(statementTimeout: .seconds(2)) { configuration in
            let proxy = try FaultProxy(target: try configuration.testPort)
            defer { proxy.stop() }
            try await TestDatabase.withPool(configuration.through(proxy)) { pool in
                try await pool.execute("CREATE TABLE t (n int8)")
                let attempts = Counter()
                // Matches the whole COMMIT message, and not `READ COMMITTED`.
                proxy.cut(after: "COMMIT\0")
                let error = await #expect(throws: PostgresError.self) {
                    try await pool.transaction { transaction in
                        attempts.increment()
                        try await transaction.execute("INSERT INTO t VALUES (1)")
                    }
                }
                #expect(error?.code == .commitUnknown)
                #expect(error?.isOutage == true)
                #expect(attempts.value == 1)
                proxy.resumeTraffic()
                // Here the server received the COMMIT.
                try await eventually("the row") { try await pool.query("SELECT count(*) FROM t").single(Int.self) == 1 }
            }
        }
    }

    @Test func `a cancelled transaction is rolled back`() async throws {
        try await withTable { pool in
            let reached = Counter()
            let task = Task {
                try await pool.transaction { transaction in
                    try await transaction.execute("UPDATE t SET n = 9")
                    reached.increment()
                    try await transaction.execute("SELECT pg_sleep(60)")
                }
            }
            try await eventually("the update") { reached.value == 1 }
            task.cancel()
            await #expect(throws: PostgresError.self) { try await task.value }
            try await eventually("the rows' release") {
                try await pool.execute("SELECT n FROM t FOR UPDATE SKIP LOCKED") == 2
            }
            #expect(try await value(1, pool) == 0)
        }
    }
}
