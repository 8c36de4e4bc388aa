import ArgumentParser
import Foundation
import PushProtocol
import ServiceKit

/// `pushctl app …`: an app in a folder, with its credentials and rules.
struct AppCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "app", abstract: "Create, check and install an app with its credentials and rules.",
        subcommands: [AppNewCommand.self, Check.self, Install.self])

    /// The providers that the app's credentials are meant for.
    enum Providers: String, ExpressibleByArgument, CaseIterable {
        case simulator, sandbox, real
    }

    struct Check: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Check an app's folder: apps file, rules, credentials and example events.",
            discussion: "Prints one line for each mistake, with file, line and cure. Nothing is sent.\n\n"
                + "Exit codes: 0 no mistake; 1 a mistake; 64 wrong arguments.")
        @Argument(help: "The folder.") var folder: String
        @Option(help: "The providers: simulator, sandbox or real. Generated credentials suit the simulator only.")
        var providers = Providers.simulator
        @OptionGroup var output: OutputOption

        func run() async throws {
            let check = try await checked(folder, providers, output)
            try output.write(check.json, text: check.notes + ["no mistakes in \(folder)"])
        }
    }

    struct Install: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Check an app's folder, and add its apps to an apps file and its rules to a folder.",
            discussion: "Running services serve a new app within seconds, once `pushctl topology apply` has created "
                + "its queues.")
        @Argument(help: "The folder.") var folder: String
        @Option(help: "The apps file of the deployment; created if it is missing.") var appsFile: String
        @Option(help: "The folder of rule files of the deployment; created if it is missing.") var rules: String
        @Option(help: "The providers: simulator, sandbox or real. Generated credentials suit the simulator only.")
        var providers = Providers.simulator
        @Flag(help: "Copy rule files and credentials. Without it, the deployment uses the folder's own files.")
        var copy = false
        @OptionGroup var output: OutputOption

        func run() async throws {
            let check = try await checked(folder, providers, output)
            guard let catalog = check.catalog else { throw CommandError("\(check.appsFile): cannot be read") }
            try AppInstallation(
                added: catalog, rules: check.rules, appsFile: appsFile, rulesFolder: rules, copies: copy
            ).run()
            try output.write(
                ["installed": .strings(catalog.ids.map(\.rawValue))], text: catalog.ids.map { "installed \($0)" })
        }
    }
}

/// Checks a folder. Prints the mistakes and exits with 1 if it has any.
private func checked(
    _ folder: String, _ providers: AppCommand.Providers, _ output: OutputOption
) async throws -> AppFolderCheck {
    var check = AppFolderCheck(folder: folder, needsRealCredentials: providers != .simulator)
    await check.run()
    guard check.findings.isEmpty else {
        try output.write(check.json, text: check.findings)
        throw ExitCode.failure
    }
    return check
}
