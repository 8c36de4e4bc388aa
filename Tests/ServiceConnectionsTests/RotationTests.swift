import AMQP
import Foundation
import Logging
import Postgres
import Testing
import TestSupport

@testable import ServiceConnections
@testable import ServiceKit

/// Password rotation of broker and database in a running process.
@Suite(.timeLimit(.minutes(3))) struct RotationTests {
    // MARK: - The file

    private func rotated(
        _ file: String, _ url: String, allowsPlaintext: Bool = false, _ logs: CapturingLogger = CapturingLogger()
    ) -> RotatedURL {
        RotatedURL(.amqpURL, file: file, url: url, allowsPlaintext: allowsPlaintext, logger: logs.logger)
    }

    @Test func `the URL is read again on each call`() throws {
        let folder = try TemporaryFolder()
        let file = try folder.write("url", "amqps://svc:one@broker/x\n")
        let url = rotated(file, "amqps://svc:one@broker/x")
        #expect(url.current() == "amqps://svc:one@broker/x")
        try folder.write("url", "amqps://other:two@broker2/y\n")
        #expect(url.current() == "amqps://other:two@broker2/y")
    }

    @Test(arguments: ["", "\n", "broker", "amqp://svc:s3cret@broker/x"])
    func `an invalid file leaves the previous URL in use, and is logged once`(text: String) throws {
        let folder = try TemporaryFolder()
        let logs = CapturingLogger()
        let url = rotated(try folder.write("url", text), "amqps://svc:one@broker/x", logs)
        for _ in 0..<3 { #expect(url.current() == "amqps://svc:one@broker/x") }
        #expect(logs.lines.filter { $0.level == .warning }.count == 1)
        #expect(!logs.lines.contains { "\($0)".contains("s3cret") })
        try folder.write("url", "amqps://svc:two@broker/x")
        #expect(url.current() == "amqps://svc:two@broker/x")
    }

    @Test func `plaintext stays allowed after a rotation`() throws {
        let folder = try TemporaryFolder()
        let file = try folder.write("url", "amqp://svc:two@broker/x")
        #expect(rotated(file, "amqp://svc:one@broker/x", allowsPlaintext: true).current() == "amqp://svc:two@broker/x")
    }

    @Test func `only a URL from a file rotates, and a variable takes precedence over the configuration file`() throws {
        let folder = try TemporaryFolder()
        let file = try folder.write("url", "amqps://svc:one@broker/x")
        let configuration = try folder.write("service.env", "AMQP_URL_FILE=\(file)\n")
        let fromFile = try Settings.load(keys: .amqp, environment: ["AMQP_URL_FILE": file])
        let fromBoth = try Settings.load(
            keys: .amqp, environment: ["HELIOGRAPH_CONFIG": configuration, "AMQP_URL": "amqps://svc:two@broker/x"])
        let fromConfiguration = try Settings.load(keys: .amqp, environment: ["HELIOGRAPH_CONFIG": configuration])
        #expect(try fromFile.rotation(of: .amqpURL, logger: .silent) != nil)
        #expect(try fromConfiguration.rotation(of: .amqpURL, logger: .silent) != nil)
        #expect(try fromBoth.rotation(of: .amqpURL, logger: .silent) == nil)
        #expect(try fromBoth.string(.amqpURL) == "amqps://svc:two@broker/x")
    }

    // MARK: - The broker

    private func url(_ base: String, user: String, password: String) throws -> String {
        var components = try #require(URLComponents(string: base))
        (components.user, components.password) = (user, password)
        return try #require(components.string)
    }

    /// Runs `body` with a broker user that has all rights on the virtual host of `url`.
    private func withUser(_ url: String, _ password: String, _ body: (String) async throws -> Void) async throws {
        let user = "rotation-\(UUID().uuidString.lowercased())"
        try await TestBroker.control("add_user", user, password)
        let outcome: Result<Void, any Error>
        do {
            try await TestBroker.control("set_permissions", "-p", host(url), user, ".*", ".*", ".*")
            outcome = .success(try await body(user))
        } catch {
            outcome = .failure(error)
        }
        try await TestBroker.control("delete_user", user)
        try outcome.get()
    }

    private func host(_ url: String) -> String { String(url.split(separator: "/").last ?? "") }

    /// Returns the number of a user's connections.
    private func connections(_ user: String) async throws -> Int {
        try await TestBroker.control("list_connections", "user").split(separator: "\n").count { $0 == user }
    }

    @Test(.enabled(if: TestBroker.isAvailable, "needs a broker: deploy/local/test starts one"))
    func `connections close with the old login and reconnect with the new one`() async throws {
        try await TestBroker.withVirtualHost { base in
            try await withUser(base, "first-word") { first in
                try await withUser(base, "second-word") { second in
                    let folder = try TemporaryFolder()
                    let file = try folder.write("url", url(base, user: first, password: "first-word"))
                    let test = try TestContext(.amqp, ["AMQP_URL_FILE": file])
                    let bus = try test.context.bus(queues: [])
                    try await test.running([bus.publisher, bus.consumer]) {
                        try await eventually("the first login", within: .seconds(30)) {
                            try await connections(first) == 2
                        }
                        try folder.write("url", url(base, user: second, password: "second-word"))
                        try await TestBroker.control("close_all_connections", "-p", host(base), "rotation")
                        try await eventually("the second login", within: .seconds(30)) {
                            try await connections(second) == 2
                        }
                        #expect(try await connections(first) == 0)
                        #expect(bus.publisher.state == .connected && bus.consumer.state == .connected)
                    }
                }
            }
        }
    }

    @Test(.enabled(if: TestBroker.isAvailable, "needs a broker: deploy/local/test starts one"))
    func `a refused login is retried as soon as the file has the new password`() async throws {
        try await TestBroker.withVirtualHost { base in
            try await withUser(base, "first-word") { user in
                let folder = try TemporaryFolder()
                let file = try folder.write("url", url(base, user: user, password: "first-word"))
                let test = try TestContext(.amqp, ["AMQP_URL_FILE": file])
                let bus = try test.context.bus(queues: [])
                try await test.running([bus.publisher]) {
                    try await eventually("the connection", within: .seconds(30)) { bus.publisher.state == .connected }
                    try await TestBroker.control("change_password", user, "second-word")
                    try await TestBroker.control("close_all_connections", "-p", host(base), "rotation")
                    try await eventually("the refusal", within: .seconds(30)) {
                        guard case .connecting(_, let error?) = bus.publisher.state else { return false }
                        return error.code == .refused(replyCode: 403)
                    }
                    try folder.write("url", url(base, user: user, password: "second-word"))
                    // The pause after a refused login grows to 30 s; a changed file ends it within 1 s.
                    try await eventually("the new password", within: .seconds(10)) {
                        bus.publisher.state == .connected
                    }
                    // A short-lived connection uses it too.
                    let isThere = try await AMQPAdministrator.with(test.context.amqp(), logger: .silent) {
                        try await $0.exchangeExists("amq.topic")
                    }
                    #expect(isThere)
                }
            }
        }
    }

    // MARK: - The database

    @Test(.enabled(if: TestDatabase.isAvailable, "needs a database: deploy/local/test starts one"))
    func `the pool reconnects with the database role's new password`() async throws {
        let server = try PostgresConfiguration(url: TestDatabase.serverURL, applicationName: "tests")
        let role = "rotation_\(UUID().uuidString.lowercased().replacing("-", with: ""))"
        try await TestDatabase.withPool(server) { server in
            try await server.execute("CREATE ROLE \(identifier: role) LOGIN PASSWORD 'first-word'")
            let outcome: Result<Void, any Error>
            do { outcome = .success(try await rotate(role, server)) } catch { outcome = .failure(error) }
            try await Task { _ = try await server.execute("DROP ROLE \(identifier: role)") }.value
            try outcome.get()
        }
    }

    private func rotate(_ role: String, _ server: PostgresPool) async throws {
        let folder = try TemporaryFolder()
        let file = try folder.write("url", url(TestDatabase.serverURL, user: role, password: "first-word"))
        let test = try TestContext(.postgres, ["DATABASE_URL_FILE": file])
        let pool = try test.context.database(schema: "none", migration: 1).pool
        try await test.running([pool]) {
            #expect(try await pool.query("SELECT current_user::text").single(String.self) == role)
            // The file has the new password before the connections close: statements fail only briefly.
            try await server.execute("ALTER ROLE \(identifier: role) PASSWORD 'second-word'")
            try folder.write("url", url(TestDatabase.serverURL, user: role, password: "second-word"))
            try await end(role, server)
            try await eventually("a statement", within: .seconds(30)) {
                (try? await pool.query("SELECT 1").single(Int.self)) == 1
            }
            // The connections close first: logins are refused until the file has changed.
            try await server.execute("ALTER ROLE \(identifier: role) PASSWORD 'third-word'")
            try await end(role, server)
            try await eventually("the refusal", within: .seconds(30)) {
                do throws(PostgresError) {
                    _ = try await pool.query("SELECT 1")
                    return false
                } catch {
                    return error.detail.contains("password authentication failed")
                }
            }
            try folder.write("url", url(TestDatabase.serverURL, user: role, password: "third-word"))
            try await eventually("a statement again", within: .seconds(30)) {
                (try? await pool.query("SELECT 1").single(Int.self)) == 1
            }
        }
    }

    /// Terminates a role's connections and waits until they are closed.
    private func end(_ role: String, _ server: PostgresPool) async throws {
        try await server.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = \(role)")
    }
}
