import Foundation
import Logging
import Testing
import TestSupport

@testable import Postgres

@Suite(.timeLimit(.minutes(2)), .enabled(if: TestDatabase.isAvailable)) struct PoolTests {
    @Test func `waiting too long for a connection times out`() async throws {
        try await TestDatabase.withPool(poolSize: 1, checkoutTimeout: .milliseconds(100)) { pool in
            // Waits first, because the first connection may take longer than the time-out.
            try await eventually("availability") { pool.isAvailable }
            let error = try await pool.transaction { _ in
                await #expect(throws: PostgresError.self) { try await pool.query("SELECT 1") }
            }
            #expect(error?.code == .checkoutTimedOut)
            #expect(error?.isOutage == true)
            #expect(try await pool.query("SELECT 1").single(Int.self) == 1)
        }
    }

    @Test func `a pool without run() times out`() async throws {
        let configuration = try PostgresConfiguration(
            url: try TestDatabase.serverURL, checkoutTimeout: .milliseconds(50), applicationName: "tests")
        let pool = PostgresPool(configuration: configuration, logger: Logger(label: "tests"))
        let error = await #expect(throws: PostgresError.self) { try await pool.query("SELECT 1") }
        #expect(error?.code == .checkoutTimedOut)
    }

    @Test func `many callers share a few connections`() async throws {
        try await TestDatabase.withPool(poolSize: 3) { pool in
            let sum = try await withThrowingTaskGroup(of: Int.self) { group in
                for n in 1...300 { group.addTask { try await pool.query("SELECT \(n)").single(Int.self) } }
                return try await group.reduce(0, +)
            }
            #expect(sum == 300 * 301 / 2)
            let database = pool.configuration.database
            let open = try await pool.query("SELECT count(*) FROM pg_stat_activity WHERE datname = \(database)")
            #expect(try open.single(Int.self) <= 3)
        }
    }

    @Test func `cancelling a task ends its statement, on the server too`() async throws {
        try await TestDatabase.withPool { pool in
            let task = Task { try await pool.query("SELECT pg_sleep(60)") }
            let running: @Sendable () async throws -> Int = {
                let sql: SQL = """
                    SELECT count(*) FROM pg_stat_activity
                    WHERE query LIKE '%pg\\_sleep(60)%' AND state = 'active' AND pid <> pg_backend_pid()
                      AND datname = current_database()
                    """
                return try await pool.query(sql).single(Int.self)
            }
            try await eventually("the statement") { try await running() == 1 }
            let start = ContinuousClock.now
            task.cancel()
            let error = await #expect(throws: PostgresError.self) { try await task.value }
            #expect(error?.code == .cancelled)
            #expect(.now - start < .seconds(30))
            try await eventually("the statement's end", within: .seconds(30)) { try await running() == 0 }
        }
    }

    @Test func `cancelling a task ends its wait for a connection`() async throws {
        try await TestDatabase.withPool(poolSize: 1) { pool in
            try await pool.transaction { _ in
                let waiting = Task { try await pool.query("SELECT 1") }
                waiting.cancel()
                let error = await #expect(throws: PostgresError.self) { try await waiting.value }
                #expect(error?.code == .cancelled)
            }
            #expect(try await pool.query("SELECT 1").single(Int.self) == 1)
        }
    }

    @Test func `a stopping pool finishes running statements and refuses new ones`() async throws {
        try await TestDatabase.withDatabase { configuration in
            let pool = PostgresPool(configuration: configuration, logger: Logger(label: "tests"))
            let running = Task { try await pool.run() }
            let began = Counter()
            let slow = Task {
                try await pool.transaction { transaction in
                    began.increment()
                    return try await transaction.query("SELECT 7 FROM pg_sleep(0.2)").single(Int.self)
                }
            }
            try await eventually("the statement's start") { began.value == 1 }
            running.cancel()
            #expect(try await slow.value == 7)
            try await running.value
            let error = await #expect(throws: PostgresError.self) { try await pool.query("SELECT 1") }
            #expect(error?.code == .poolClosed)
            #expect(!pool.isAvailable)
        }
    }

    @Test func `a thousand opened and released connections leak nothing`() async throws {
        try await TestDatabase.withDatabase { configuration in
            func openDescriptors() throws -> Int {
                try FileManager.default.contentsOfDirectory(atPath: "/dev/fd").count
            }
            let logger = Logger(label: "tests")
            let before = try openDescriptors()
            for batch in 0..<100 {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for n in 0..<10 {
                        group.addTask {
                            let connection = PostgresConnection(configuration: configuration, logger: logger)
                            try await connection.open()
                            let rows = try await connection.run("SELECT \(n)")?.rows
                            #expect(try rows?.single(Int.self) == n)
                            // Releases every other connection without closing it.
                            if batch.isMultiple(of: 2) { await connection.close() }
                        }
                    }
                    try await group.waitForAll()
                }
            }
            // Other suites open and close connections concurrently.
            try await eventually("closed descriptors") { try openDescriptors() < before + 100 }
            let database = configuration.database
            try await TestDatabase.withPool(configuration) { pool in
                try await eventually("closed sessions") {
                    try await pool.query("SELECT count(*) FROM pg_stat_activity WHERE datname = \(database)")
                        .single(Int.self) <= 4
                }
            }
        }
    }
}
