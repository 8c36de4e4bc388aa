import Foundation
import Logging
import Testing
import TestSupport

@testable import Postgres

private let logger = Logger(label: "tests.migrations")

/// Calls `body` with a directory of these files.
@discardableResult
private func withFiles<R>(_ files: [String: String], _ body: (String) async throws -> R) async throws -> R {
    let directory = FileManager.default.temporaryDirectory.appending(path: "migrations-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    for (name, text) in files { try Data(text.utf8).write(to: directory.appending(path: name)) }
    return try await body(directory.path(percentEncoded: false))
}

@Suite struct MigrationPlanTests {
    private func file(_ version: Int, _ text: String = "SELECT 1") throws -> MigrationFile {
        try MigrationFile(fileName: "000\(version)_step.sql", contents: Array(text.utf8))
    }

    private func applied(_ file: MigrationFile) -> AppliedMigration {
        AppliedMigration(version: file.version, name: file.name, checksum: file.checksum)
    }

    @Test func `migrations not applied are pending, in order`() throws {
        let files = try [file(1), file(2), file(3)]
        #expect(try MigrationPlan.pending(files: files, applied: [], schema: "s") == files)
        #expect(
            try MigrationPlan.pending(files: files, applied: [applied(files[0])], schema: "s") == [files[1], files[2]])
        #expect(try MigrationPlan.pending(files: files, applied: files.map(applied), schema: "s") == [])
    }

    @Test func `an older release has nothing pending on a newer schema`() throws {
        let files = try [file(1), file(2)]
        #expect(try MigrationPlan.pending(files: [files[0]], applied: files.map(applied), schema: "s") == [])
    }

    @Test func `a file changed after it was applied is rejected`() throws {
        let error = #expect(throws: MigrationError.self) {
            try MigrationPlan.pending(
                files: [file(1, "SELECT 2")], applied: [applied(file(1, "SELECT 1"))], schema: "s")
        }
        #expect(error?.code == .changed)
        #expect(error?.subject == "0001_step.sql")
    }

    @Test func `a gap in the applied migrations is rejected`() throws {
        let error = #expect(throws: MigrationError.self) {
            try MigrationPlan.pending(files: [], applied: [applied(file(2))], schema: "s")
        }
        #expect(error?.code == .gap)
    }

    @Test(arguments: ["1_a.sql", "0001-a.sql", "0001_A.sql", "0001_.sql", "00001_a.sql", "a.sql"])
    func `a malformed file name is rejected`(name: String) async throws {
        try await withFiles([name: "SELECT 1"]) { directory in
            let error = #expect(throws: MigrationError.self) { try MigrationFile.read(directory: directory) }
            #expect(error?.code == .badName)
            #expect(error?.subject == name)
        }
    }

    @Test func `numbers start at one, without gaps or duplicates`() async throws {
        try await withFiles(["0001_a.sql": "", "0003_b.sql": ""]) { directory in
            let error = #expect(throws: MigrationError.self) { try MigrationFile.read(directory: directory) }
            #expect(error?.code == .gap)
            #expect(error?.description.contains("migration 2 is missing") == true)
        }
        try await withFiles(["0001_a.sql": "", "0001_b.sql": ""]) { directory in
            #expect(throws: MigrationError.self) { try MigrationFile.read(directory: directory) }
        }
        try await withFiles(["0001_a.sql": "", "README.md": "", ".0002_b.sql.swp": ""]) { directory async throws in
            #expect(try MigrationFile.read(directory: directory).map(\.fileName) == ["0001_a.sql"])
        }
    }

    @Test func `a missing directory is reported`() {
        #expect(throws: MigrationError.self) { try MigrationFile.read(directory: "/nowhere") }
    }
}

@Suite(.timeLimit(.minutes(2)), .enabled(if: TestDatabase.isAvailable)) struct MigrationTests {
    private static let files = [
        "0001_table.sql": "CREATE TABLE own.t (n int8);\nINSERT INTO own.t VALUES (1);",
        "0002_more.sql": "-- Ärger; with 'quotes'\nINSERT INTO own.t VALUES (2);",
    ]

    private func migrate(
        _ directory: String, _ configuration: PostgresConfiguration, lockTimeout: Duration = .seconds(20)
    ) async throws -> [String] {
        try await PostgresMigrator.migrate(
            schema: "own", directory: directory, configuration: configuration, logger: logger, lockTimeout: lockTimeout
        ).map(\.fileName)
    }

    private func version(_ configuration: PostgresConfiguration) async throws -> Int {
        try await TestDatabase.withPool(configuration) { pool in
            try await PostgresMigrator.currentVersion(schema: "own", pool: pool)
        }
    }

    @Test func `an empty database is migrated once`() async throws {
        try await TestDatabase.withDatabase { configuration in
            try await withFiles(Self.files) { directory in
                #expect(try await version(configuration) == 0)
                let pending = try await PostgresMigrator.pending(
                    schema: "own", directory: directory, configuration: configuration, logger: logger)
                #expect(pending.map(\.version) == [1, 2])
                #expect(try await migrate(directory, configuration) == ["0001_table.sql", "0002_more.sql"])
                #expect(try await migrate(directory, configuration) == [])
                #expect(try await version(configuration) == 2)
                try await TestDatabase.withPool(configuration) { pool async throws in
                    #expect(try await pool.query("SELECT sum(n) FROM own.t").single(Int.self) == 3)
                }
            }
        }
    }

    @Test func `concurrent migrators apply each file once`() async throws {
        try await TestDatabase.withDatabase { configuration in
            try await withFiles(Self.files) { directory in
                async let one = migrate(directory, configuration)
                async let other = migrate(directory, configuration)
                let applied = try await one + other
                #expect(applied == ["0001_table.sql", "0002_more.sql"])
            }
        }
    }

    @Test func `a failing statement is reported with file and line, and its file is rolled back`() async throws {
        try await TestDatabase.withDatabase { configuration in
            var files = Self.files
            files["0003_bad.sql"] = "CREATE TABLE own.u (n int8);\n-- é\nINSERT INTO own.nowhere\nVALUES (1);"
            try await withFiles(files) { directory in
                let error = await #expect(throws: MigrationError.self) { try await migrate(directory, configuration) }
                #expect(error?.code == .failed)
                #expect(error?.subject == "0003_bad.sql")
                #expect(error?.detail.contains("(line 3)") == true)
                #expect(error?.detail.contains("own.nowhere") == true)
                #expect(try await version(configuration) == 2)
                try await TestDatabase.withPool(configuration) { pool async throws in
                    #expect(try await pool.query("SELECT to_regclass('own.u') IS NULL").single(Bool.self))
                }
            }
        }
    }

    @Test func `an edited file is rejected before any is applied`() async throws {
        try await TestDatabase.withDatabase { configuration in
            try await withFiles(Self.files) { try await migrate($0, configuration) }
            var files = Self.files
            files["0001_table.sql"]? += " "
            files["0003_new.sql"] = "SELECT 1"
            try await withFiles(files) { directory in
                let error = await #expect(throws: MigrationError.self) { try await migrate(directory, configuration) }
                #expect(error?.code == .changed)
            }
            #expect(try await version(configuration) == 2)
        }
    }

    @Test func `a file that ends its transaction is rejected`() async throws {
        try await TestDatabase.withDatabase { configuration in
            for script in ["COMMIT", "COMMIT; BEGIN", "ROLLBACK; BEGIN"] {
                try await withFiles(["0001_sly.sql": "SELECT 1; \(script);"]) { directory in
                    let error = await #expect(throws: MigrationError.self) {
                        try await migrate(directory, configuration)
                    }
                    #expect(error?.code == .failed)
                    #expect(error?.detail.contains("ends its transaction") == true)
                }
            }
            #expect(try await version(configuration) == 0)
        }
    }

    @Test func `the migrator waits for a lock, and reports a time-out`() async throws {
        try await TestDatabase.withDatabase { configuration in
            try await withFiles(Self.files) { try await migrate($0, configuration) }
            var files = Self.files
            files["0003_alter.sql"] = "ALTER TABLE own.t ADD m int8"
            try await withFiles(files) { directory in
                try await TestDatabase.withPool(configuration) { pool in
                    let error = try await pool.transaction { transaction in
                        try await transaction.execute("LOCK TABLE own.t IN ACCESS SHARE MODE")
                        return await #expect(throws: MigrationError.self) {
                            try await migrate(directory, configuration, lockTimeout: .seconds(1))
                        }
                    }
                    #expect(error?.code == .locked)
                }
                #expect(try await migrate(directory, configuration) == ["0003_alter.sql"])
            }
        }
    }
}
