import ArgumentParser
import Foundation
import Postgres
import ServiceKit

/// `pushctl migrate`: brings every service's schema up to date.
struct MigrateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate",
        abstract: "Applies the migrations that are missing. Safe to repeat, and to run twice at once.")
    @Option(help: "The folder that holds <Service>/Storage/Migrations.")
    var migrations = "Services"

    /// The schema of each service that owns tables.
    private static let schemas = [("feedback", "Feedback"), ("registry", "TokenRegistry"), ("rules", "Rules")]

    func run() async throws {
        let settings = try Environment.settings(.postgres)
        do {
            let configuration = try settings.postgres(
                poolSize: 1, applicationName: "pushctl", logger: Environment.logger)
            for (schema, service) in Self.schemas {
                let directory = "\(migrations)/\(service)/Storage/Migrations"
                guard FileManager.default.fileExists(atPath: directory) else {
                    throw Refusal("\(directory): no such folder; --migrations names the one that holds \(service)")
                }
                let applied = try await PostgresMigrator.migrate(
                    schema: schema, directory: directory, configuration: configuration, logger: Environment.logger)
                print("\(schema): \(applied.isEmpty ? "up to date" : "applied \(applied.count)")")
                for migration in applied { print("  \(migration.fileName)") }
            }
        } catch let error as PostgresError {
            throw Refusal("the database: \(error)")
        } catch let error as MigrationError {
            throw Refusal("\(error)")
        } catch let error as ConfigurationError {
            throw Refusal("\(error)")
        }
    }
}
