internal import Crypto
internal import Foundation
internal import Logging
internal import Postgres

/// Databases with the schema of one service, which tests copy. Copying is several times quicker than applying all
/// migrations. The name depends on the migrations, so a later run on the same server finds them.
actor TestTemplates {
    static let shared = TestTemplates()

    private var names: [TestSchema: Task<String, any Error>] = [:]

    /// The name of the database to copy. The first caller creates it.
    func name(of schema: TestSchema) async throws -> String {
        if let name = names[schema] { return try await name.value }
        let name = Task { try await Self.make(schema) }
        names[schema] = name
        return try await name.value
    }

    private static func make(_ schema: TestSchema) async throws -> String {
        let name = "template_\(schema.rawValue)_\(try version(of: schema))"
        return try await TestDatabase.withServer { server in
            let exists: SQL = "SELECT EXISTS (SELECT FROM pg_database WHERE datname = \(name))"
            if try await server.query(exists).single(Bool.self) { return name }
            let new = TestDatabase.newName()
            try await server.execute("CREATE DATABASE \(identifier: new)")
            let configuration = try PostgresConfiguration(url: TestDatabase.serverURL, applicationName: "tests")
            try await schema.make(in: configuration.with(database: new))
            do {
                try await server.execute("ALTER DATABASE \(identifier: new) RENAME TO \(identifier: name)")
            } catch {
                // Another process was quicker.
                try await server.execute("DROP DATABASE \(identifier: new) WITH (FORCE)")
                guard try await server.query(exists).single(Bool.self) else { throw error }
            }
            return name
        }
    }

    /// The start of a hash over all migrations.
    private static func version(of schema: TestSchema) throws -> String {
        var hash = SHA256()
        for file in try FileManager.default.contentsOfDirectory(atPath: schema.migrations).sorted() {
            hash.update(data: Data(file.utf8))
            hash.update(data: try Data(contentsOf: URL(filePath: schema.migrations).appending(path: file)))
        }
        return hash.finalize().prefix(8).map { String(format: "%02x", $0) }.joined()
    }
}
