import Postgres
import ServiceConnections
import ServiceKit
import Testing
import TestSupport

@Suite(.timeLimit(.minutes(2))) struct DatabaseTests {
    @Test(.enabled(if: TestDatabase.isAvailable, "needs a database: deploy/local/test starts one"))
    func `the database is ready once it is reachable and its schema is recent enough`() async throws {
        try await TestDatabase.withDatabase { configuration in
            let server = try TestDatabase.serverURL
            let url = server[...(server.lastIndex(of: "/") ?? server.startIndex)] + configuration.database
            let test = try TestContext(.postgres, ["DATABASE_URL": String(url)])
            let database = try test.context.database(schema: "sample", migration: 2)
            let folder = try TemporaryFolder()
            try await test.running(database.services) {
                try await eventually("the database", within: .seconds(30)) { test.state("database") == .holds }
                try await eventually("the schema's absence", within: .seconds(30)) {
                    test.reason("schema")
                        == "schema sample is at migration 0, 2 is needed; run `pushctl migrate`"
                }
                try folder.write("0001_first.sql", "CREATE TABLE sample.first (id int)")
                try folder.write("0002_second.sql", "CREATE TABLE sample.second (id int)")
                try await PostgresMigrator.migrate(
                    schema: "sample", directory: folder.path, configuration: configuration,
                    logger: test.context.logger)
                try await eventually("readiness", within: .seconds(30)) { test.readiness.report.isReady }
            }
        }
    }

    @Test func `an unreachable database keeps the service unready, and shutdown stays quick`() async throws {
        let test = try TestContext(.postgres, ["DATABASE_URL": "postgresql://sample:hunter2@127.0.0.1:1/x"])
        let database = try test.context.database(schema: "sample", migration: 1)
        try await test.running(database.services) {
            try await eventually("the database", within: .seconds(30)) { test.reason("database") != nil }
            try await eventually("the schema", within: .seconds(30)) {
                test.reason("schema")?.contains("not been checked") == false
            }
            #expect(test.reason("schema")?.contains("hunter2") == false)
        }
    }

    @Test func `an invalid URL is rejected with its key and without its password`() throws {
        let test = try TestContext(.postgres, ["DATABASE_URL": "postgresql://sample:hunter2@host/x?nonsense=1"])
        let error = #expect(throws: ConfigurationError.self) { try test.context.postgres() }
        #expect(error?.problems.first?.hasPrefix("DATABASE_URL: ") == true)
        #expect(error?.problems.first?.contains("hunter2") == false)
    }
}

extension DatabaseTests {
    @Test func `statements are prepared, unless DATABASE_STATEMENTS is unnamed`() throws {
        let url = ["DATABASE_URL": "postgresql://sample:hunter2@127.0.0.1:1/x"]
        #expect(try TestContext(.postgres, url).context.postgres().statementMode == .prepared)
        let unnamed = url.merging(["DATABASE_STATEMENTS": "unnamed"]) { $1 }
        #expect(try TestContext(.postgres, unnamed).context.postgres().statementMode == .unnamed)
        let unknown = url.merging(["DATABASE_STATEMENTS": "none"]) { $1 }
        #expect(throws: ConfigurationError.self) { try TestContext(.postgres, unknown).context.postgres() }
    }
}
