import Foundation
import Logging
import Synchronization
import Testing
import TestSupport

@testable import Postgres

extension PostgresConfiguration {
    /// The port of the local test server.
    var testPort: Int {
        get throws { try #require(Int(connectionKeywords["port"] ?? "5432")) }
    }

    func through(_ proxy: FaultProxy) -> PostgresConfiguration {
        with(host: "127.0.0.1", port: proxy.port)
    }
}

@Suite(.timeLimit(.minutes(2)), .enabled(if: TestDatabase.isAvailable)) struct FaultTests {
    @Test func `after connections are terminated, the next statement works`() async throws {
        try await TestDatabase.withPool { pool in
            for _ in 0..<3 {
                _ = try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<4 { group.addTask { _ = try await pool.query("SELECT pg_sleep(0.05)") } }
                    try await group.waitForAll()
                }
                try await terminateOthers(pool)
                // A session disappears from pg_stat_activity shortly before its socket closes.
                try await eventually("eight statements in a row") {
                    for n in 0..<8 where (try? await pool.query("SELECT \(n)").single(Int.self)) != n { return false }
                    return true
                }
            }
        }
    }

    /// Terminates the pool's connections from another session and waits until they are closed.
    private func terminateOthers(_ pool: PostgresPool) async throws {
        let database = pool.configuration.database
        let server = try PostgresConfiguration(url: try TestDatabase.serverURL, applicationName: "tests")
        try await TestDatabase.withPool(server) { server in
            try await server.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = \(database)")
            try await eventually("closed sessions") {
                try await server.query("SELECT count(*) FROM pg_stat_activity WHERE datname = \(database)")
                    .single(Int.self) == 0
            }
        }
    }

    @Test func `a connection broken during a statement is reported as lost`() async throws {
        try await TestDatabase.withDatabase { configuration in
            let proxy = try FaultProxy(target: try configuration.testPort)
            defer { proxy.stop() }
            try await TestDatabase.withPool(configuration.through(proxy)) { pool async throws in
                proxy.cut(after: "select 42")
                let error = await #expect(throws: PostgresError.self) { try await pool.query("select 42") }
                #expect(error?.code == .connectionLost)
                proxy.resumeTraffic()
                #expect(try await pool.query("select 43").single(Int.self) == 43)
            }
        }
    }

    @Test func `a frozen server is detected soon after the statement time-out`() async throws {
        try await TestDatabase.withDatabase(poolSize: 1, statementTimeout: .seconds(1)) { configuration in
            let proxy = try FaultProxy(target: try configuration.testPort)
            defer { proxy.stop() }
            try await TestDatabase.withPool(configuration.through(proxy)) { pool in
                #expect(try await pool.query("SELECT 1").single(Int.self) == 1)
                proxy.freeze()
                let start = ContinuousClock.now
                let error = await #expect(throws: PostgresError.self) { try await pool.query("SELECT 1") }
                #expect(error?.code == .deadlineExceeded)
                #expect(.now - start < .seconds(10))
                // The connection was closed, and a new one cannot be opened.
                try await eventually("unavailability") { !pool.isAvailable }
                proxy.resumeTraffic()
                try await eventually("availability") { pool.isAvailable }
                #expect(try await pool.query("SELECT 2").single(Int.self) == 2)
            }
        }
    }

    @Test func `a transaction on a frozen server times out too`() async throws {
        try await TestDatabase.withDatabase(statementTimeout: .seconds(1)) { configuration in
            let proxy = try FaultProxy(target: try configuration.testPort)
            defer { proxy.stop() }
            try await TestDatabase.withPool(configuration.through(proxy)) { pool in
                let started = Mutex(ContinuousClock.now)
                let error = await #expect(throws: PostgresError.self) {
                    try await pool.transaction { transaction in
                        try await transaction.execute("SELECT 1")
                        proxy.freeze()
                        started.withLock { $0 = .now }
                        try await transaction.execute("SELECT 2")
                    }
                }
                #expect(error?.code == .deadlineExceeded)
                #expect(.now - started.withLock { $0 } < .seconds(10))
            }
        }
    }

    @Test func `the server cancels a slow statement, and the connection stays open`() async throws {
        try await TestDatabase.withPool(poolSize: 1, statementTimeout: .milliseconds(200)) { pool in
            let pid = try await pool.query("SELECT pg_backend_pid()").single(Int.self)
            let error = await #expect(throws: PostgresError.self) { try await pool.query("SELECT pg_sleep(60)") }
            #expect(error?.code == .sqlState("57014"))
            #expect(try await pool.query("SELECT pg_backend_pid()").single(Int.self) == pid)
        }
    }

    @Test func `the loss of an idle connection is detected without a statement`() async throws {
        try await TestDatabase.withDatabase(checkoutTimeout: .seconds(1)) { configuration in
            let proxy = try FaultProxy(target: try configuration.testPort)
            try await TestDatabase.withPool(configuration.through(proxy)) { pool in
                try await eventually("availability") { pool.isAvailable }
                proxy.stop()
                try await eventually("unavailability") { !pool.isAvailable }
                let error = await #expect(throws: PostgresError.self) { try await pool.query("SELECT 1") }
                #expect(error?.code == .checkoutTimedOut)
                #expect(error?.detail.contains("cannot be reached") == true)
            }
        }
    }

    @Test func `a wrong password is reported without the password`() async throws {
        let url = try TestDatabase.serverURL
        let components = try #require(URLComponents(string: url))
        var wrong = components
        wrong.password = "open-sesame"
        let configuration = try PostgresConfiguration(
            url: try #require(wrong.string), checkoutTimeout: .seconds(3), applicationName: "tests")
        let log = CapturingLogger()
        let pool = PostgresPool(configuration: configuration, logger: log.logger)
        let running = Task { try await pool.run() }
        let error = await #expect(throws: PostgresError.self) { try await pool.query("SELECT 1") }
        running.cancel()
        try await running.value
        #expect(error?.detail.contains("password authentication failed") == true)
        #expect(error.map { !"\($0)".contains("open-sesame") } == true)
        #expect(log.lines.contains { $0.level == .warning })
        #expect(!log.lines.contains { "\($0)".contains("open-sesame") })
    }
}
