package import Postgres
internal import Foundation
internal import Logging

/// Creates databases for tests on the server in `HELIOGRAPH_TEST_DATABASE_URL`.
package enum TestDatabase {
    /// Thrown when `HELIOGRAPH_TEST_DATABASE_URL` is not set.
    package struct NoServer: Error, CustomStringConvertible {
        package let description =
            "HELIOGRAPH_TEST_DATABASE_URL is not set; run the tests with deploy/local/test, which starts a server"
    }

    /// Whether a server is available, for `.enabled(if:)`.
    package static var isAvailable: Bool { (try? serverURL) != nil }

    /// The server's URL. Its role may create databases.
    package static var serverURL: String {
        get throws {
            guard let url = ProcessInfo.processInfo.environment["HELIOGRAPH_TEST_DATABASE_URL"] else {
                throw NoServer()
            }
            return url
        }
    }

    /// Runs `body` with a new database, and drops it afterwards, connections included.
    ///
    /// - Parameter template: the database that it copies.
    package static func withDatabase<R: Sendable>(
        template: String = "template1", poolSize: Int = 4, checkoutTimeout: Duration = .seconds(60),
        statementTimeout: Duration = .seconds(60),
        _ body: (PostgresConfiguration) async throws -> R
    ) async throws -> R {
        var configuration = try PostgresConfiguration(
            url: serverURL, poolSize: poolSize, checkoutTimeout: checkoutTimeout, statementTimeout: statementTimeout,
            applicationName: "tests")
        // Many waiters for one row may take long on a busy machine. Tests do not count this as an outage.
        configuration.lockTimeout = statementTimeout
        let name = newName()
        return try await withServer { [configuration] server in
            try await server.execute("CREATE DATABASE \(identifier: name) TEMPLATE \(identifier: template)")
            let result: Result<R, any Error>
            do { result = .success(try await body(configuration.with(database: name))) } catch {
                result = .failure(error)
            }
            // In a new task, so that cleanup runs after a cancellation too.
            try await Task { _ = try await server.execute("DROP DATABASE \(identifier: name) WITH (FORCE)") }.value
            return try result.get()
        }
    }

    /// An unused name for a database.
    static func newName() -> String { "test_\(UUID().uuidString.lowercased().replacing("-", with: ""))" }

    /// Runs `body` with a pool of one connection to the server, for creating and dropping databases.
    static func withServer<R: Sendable>(_ body: (PostgresPool) async throws -> R) async throws -> R {
        // These statements wait for the disk.
        let server = try PostgresConfiguration(
            url: serverURL, poolSize: 1, checkoutTimeout: .seconds(60), statementTimeout: .seconds(60),
            applicationName: "tests")
        return try await withPool(server, body)
    }

    /// Runs a pool during `body`.
    package static func withPool<R: Sendable>(
        _ configuration: PostgresConfiguration, _ body: (PostgresPool) async throws -> R
    ) async throws -> R {
        let pool = PostgresPool(configuration: configuration, logger: Logger(label: "tests.postgres"))
        let running = Task { try await pool.run() }
        let result: Result<R, any Error>
        do { result = .success(try await body(pool)) } catch { result = .failure(error) }
        running.cancel()
        try await running.value
        return try result.get()
    }

    /// Runs `body` with a new database and a pool on it.
    package static func withPool<R: Sendable>(
        poolSize: Int = 4, checkoutTimeout: Duration = .seconds(60), statementTimeout: Duration = .seconds(60),
        _ body: (PostgresPool) async throws -> R
    ) async throws -> R {
        try await withDatabase(
            poolSize: poolSize, checkoutTimeout: checkoutTimeout, statementTimeout: statementTimeout
        ) { configuration in
            try await withPool(configuration, body)
        }
    }
}
