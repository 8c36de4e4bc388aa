import ArgumentParser
import Foundation
import Postgres
import PushProtocol
import ServiceConnections
import ServiceKit

/// `pushctl migrate`: applies the migrations of every service.
struct MigrateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate",
        abstract: "Apply missing migrations. Safe to repeat and to run concurrently.")
    @Option(help: "The folder with the services and their migrations.")
    var migrations = "Services"
    @OptionGroup var output: OutputOption

    /// The schemas with tables, and the folders of their migrations.
    static let schemas = [
        ("feedback", "Feedback/Store/Storage/Migrations"), ("registry", "TokenRegistry/Store/Storage/Migrations"),
        ("rules", "Rules/Storage/Migrations"),
    ]

    func run() async throws {
        let settings = try Environment.settings(.postgres)
        do {
            let configuration = try settings.postgres(
                poolSize: 1, applicationName: "pushctl", logger: Environment.logger)
            var schemas: [JSONValue] = []
            var lines: [String] = []
            for (schema, folder) in Self.schemas {
                let directory = "\(migrations)/\(folder)"
                guard FileManager.default.fileExists(atPath: directory) else {
                    throw CommandError(
                        "\(directory): no such folder; --migrations names the folder that contains \(folder)", .notFound
                    )
                }
                let applied = try await PostgresMigrator.migrate(
                    schema: schema, directory: directory, configuration: configuration, logger: Environment.logger)
                lines.append("\(schema): \(applied.isEmpty ? "up to date" : "applied \(applied.count)")")
                lines += applied.map { "  \($0.fileName)" }
                schemas.append(["schema": .string(schema), "applied": .strings(applied.map(\.fileName))])
            }
            try output.write(["schemas": .array(schemas)], text: lines)
        } catch let error as PostgresError {
            throw CommandError(error)
        } catch let error as MigrationError {
            throw CommandError("\(error)")
        } catch let error as ConfigurationError {
            throw CommandError(error)
        }
    }
}
