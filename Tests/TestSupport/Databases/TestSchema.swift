package import Postgres
internal import Foundation
internal import Logging

/// A service's database schema, created by its own migrations.
package enum TestSchema: String, Sendable {
    case registry, rules, feedback

    /// The folder with the service's folder `Storage`.
    private var folder: String {
        switch self {
        case .registry: "TokenRegistry/Store"
        case .rules: "Rules"
        case .feedback: "Feedback/Store"
        }
    }

    /// The folder of the service's migrations.
    var migrations: String {
        URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Services/\(folder)/Storage/Migrations").path
    }

    /// Creates the schema in a database. `withDatabase` is quicker for a new one.
    package func make(in configuration: PostgresConfiguration) async throws {
        try await PostgresMigrator.migrate(
            schema: rawValue, directory: migrations, configuration: configuration, logger: Logger(label: "tests.schema")
        )
    }

    /// Runs `body` with a new database with this schema.
    package func withDatabase<R: Sendable>(_ body: (PostgresConfiguration) async throws -> R) async throws -> R {
        try await TestDatabase.withDatabase(template: TestTemplates.shared.name(of: self), body)
    }

    /// Runs `body` with a new database with this schema, and a pool on it.
    package func withPool<R: Sendable>(
        statementTimeout: Duration = .seconds(60), _ body: (PostgresPool) async throws -> R
    ) async throws -> R {
        try await withDatabase { configuration in
            var limited = configuration
            limited.statementTimeout = statementTimeout
            return try await TestDatabase.withPool(limited, body)
        }
    }
}
