import AMQP
import ArgumentParser
import Foundation
import PushProtocol
import ServiceKit

/// `pushctl doctor`: checks a deployment, and names the cure of each problem.
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Check apps, credentials, broker, database, clocks and names; exit code 1 if anything is broken.",
        discussion: """
            Each finding has a severity and the next step: ok, skipped (not checked), warning, error. Checks without their
            setting are skipped. Use the broker's user topology and the owner of the database schemas.

            AMQP cannot read users, rights, policies, arguments and bindings. To check them too, run
            \(BrokerExport.command) | pushctl doctor --definitions -
            """)

    @OptionGroup var apps: AppsOption
    @Option(help: "The broker's definitions: a file, or - for standard input.") var definitions: String?
    @Option(help: "The folder with the services and their migrations. Default: Services, or that of the images.")
    var migrations: String?
    @OptionGroup var services: ServicesOption
    @OptionGroup var output: OutputOption

    /// The folder of the images.
    private static let installedMigrations = "/usr/share/heliograph/Services"

    func run() async throws {
        let export = try definitions.map { try BrokerExport(json: PublishCommand.read($0), host: Self.virtualHost) }
        let (catalog, finding) = CredentialDoctor.catalog(apps.apps)
        var findings = [finding]
        if let catalog {
            let credentials = CredentialDoctor(catalog: catalog)
            async let names = NetworkDoctor.names(credentials.hosts())
            findings += await credentials.findings() + names
        }
        findings += await BrokerDoctor(catalog: catalog, export: export).findings()
        findings += await DatabaseDoctor(migrations: try migrationsFolder()).findings()
        for url in services.service { findings += await ServiceProbe(url: url).findings() }
        let report = DoctorReport(findings: findings)
        try output.write(report.json, text: report.lines(isColored: Terminal.isColored))
        guard report.isHealthy else { throw ExitCode(CommandStatus.findings.rawValue) }
    }

    /// The virtual host of `AMQP_URL`.
    private static var virtualHost: String {
        (try? brokerConfiguration())?.virtualHost ?? BrokerDefinitions.virtualHost
    }

    private func migrationsFolder() throws -> String? {
        func hasMigrations(_ folder: String) -> Bool {
            MigrateCommand.schemas.allSatisfy { FileManager.default.fileExists(atPath: "\(folder)/\($0.1)") }
        }
        guard let migrations else { return ["Services", Self.installedMigrations].first(where: hasMigrations) }
        guard hasMigrations(migrations) else {
            throw CommandError("\(migrations): has no migrations of the services", .notFound)
        }
        return migrations
    }
}
