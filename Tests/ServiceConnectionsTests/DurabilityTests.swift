import Foundation
import Postgres
import Testing
import TestSupport

@testable import ServiceConnections
@testable import ServiceKit

/// The database's durability settings, and the report of their risks.
@Suite(.timeLimit(.minutes(2)), .serialized) struct DurabilityTests {
    private static let safe = DatabaseDurability(
        fsync: true, fullPageWrites: true, synchronousCommit: "on", synchronousStandbyNames: "ANY 1 (a, b)",
        receivers: 2)

    @Test(arguments: ["remote_write", "on", "remote_apply"])
    func `commits that wait for a standby are no risk`(mode: String) {
        var durability = Self.safe
        durability.synchronousCommit = mode
        #expect(durability.risks == [])
    }

    @Test func `a single server with fsync is no risk`() {
        var durability = Self.safe
        (durability.synchronousStandbyNames, durability.receivers) = ("", 0)
        #expect(durability.risks == [])
        durability.synchronousCommit = "local"
        #expect(durability.risks == [])
    }

    @Test func `an asynchronous standby is a risk`() {
        var durability = Self.safe
        durability.synchronousStandbyNames = ""
        #expect(durability.risks.count == 1)
        #expect(durability.risks.first?.contains("synchronous_standby_names is empty") == true)
    }

    @Test(arguments: ["off", "local"])
    func `synchronous standbys without waiting commits are a risk`(mode: String) {
        var durability = Self.safe
        durability.synchronousCommit = mode
        durability.receivers = 0
        #expect(durability.risks.last?.contains("synchronous_commit = \(mode)") == true)
        #expect(durability.risks.count == (mode == "off" ? 2 : 1))
    }

    @Test func `disabled fsync is a risk`() {
        var durability = Self.safe
        (durability.fsync, durability.fullPageWrites) = (false, false)
        #expect(durability.risks.map { $0.prefix { $0 != ":" } } == ["fsync is off", "full_page_writes is off"])
    }

    @Test(.enabled(if: TestDatabase.isAvailable, "needs a database: deploy/local/test starts one"))
    func `asynchronous commits of a session are reported, and the process stays ready`() async throws {
        let url = try TestDatabase.serverURL + "?options=-c%20synchronous_commit%3Doff"
        let test = try TestContext(.postgres, ["DATABASE_URL": url])
        let pool = try test.context.database(schema: "none", migration: 1).pool
        let check = DurabilityCheck(pool: pool, readiness: test.readiness, logger: test.context.logger)
        try await test.running([pool, check]) {
            try await eventually("the risk", within: .seconds(30)) {
                test.risks?.contains("synchronous_commit is off") == true
            }
        }
    }

    @Test(.enabled(if: TestDatabase.isAvailable, "needs a database: deploy/local/test starts one"))
    func `a role without rights detects an asynchronous standby`() async throws {
        let server = try PostgresConfiguration(url: TestDatabase.serverURL, applicationName: "tests")
        let folder = try TemporaryFolder()
        let components = try #require(URLComponents(string: try TestDatabase.serverURL))
        let receiver = Command(
            "env",
            [
                "PGPASSWORD=\(components.password ?? "")", try Self.receiveWAL(), "--no-loop", "-D", folder.path, "-h",
                components.host ?? "127.0.0.1", "-p", "\(components.port ?? 5432)", "-U", components.user ?? "",
            ])
        try await TestDatabase.withPool(server) { server in
            let role = "durability_\(UUID().uuidString.lowercased().replacing("-", with: ""))"
            try await server.execute("CREATE ROLE \(identifier: role)")
            let outcome: Result<Void, any Error>
            do {
                try await receiver.whileRunning {
                    try await eventually("the receiver", within: .seconds(30)) {
                        try await server.query("SELECT count(*) FROM pg_stat_replication").single(Int.self) > 0
                    }
                    let risks = try await server.transaction { transaction in
                        try await transaction.execute("SET LOCAL ROLE \(identifier: role)")
                        return try await transaction.query(DatabaseDurability.query)
                    }.first.map { try DatabaseDurability($0).risks }
                    #expect(risks?.contains { $0.hasPrefix("no commit waits for a standby") } == true)
                }
                outcome = .success(())
            } catch {
                outcome = .failure(error)
            }
            try await Task { _ = try await server.execute("DROP ROLE \(identifier: role)") }.value
            try outcome.get()
        }
    }

    /// Returns the path of pg_receivewal, which streams the WAL like a standby. It must not be older than the server.
    private static func receiveWAL() throws -> String {
        if let path = ProcessInfo.processInfo.environment["HELIOGRAPH_TEST_RECEIVEWAL"] { return path }
        let folders = try FileManager.default.contentsOfDirectory(atPath: "/usr/lib/postgresql")
        let paths = folders.map { "/usr/lib/postgresql/\($0)/bin/pg_receivewal" }
        return try #require(paths.last { FileManager.default.isExecutableFile(atPath: $0) })
    }
}

extension TestContext {
    /// The reason of the durability condition if it is degraded.
    fileprivate var risks: String? {
        if case .degraded(let risks) = state(DurabilityCheck.condition) { risks } else { nil }
    }
}
