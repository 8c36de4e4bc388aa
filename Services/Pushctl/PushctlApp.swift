import ArgumentParser
import Foundation
import RuleDryRun
import ServiceKit

/// The operator's command line. It reads the same settings as the services.
@main struct PushctlApp: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pushctl",
        abstract:
            "Operate Heliograph: its state, apps, topology, migrations, devices, campaigns, dead letters, keys, events and rules.",
        discussion: """
            Reads the services' own variables: AMQP_URL, AMQP_CA_FILE, DATABASE_URL, HELIOGRAPH_ALLOW_PLAINTEXT,
            HELIOGRAPH_APPS, REGISTRY_URL, REGISTRY_OPERATOR_KEY, APNS_CHANNELS_URL, APNS_CHANNELS_SANDBOX_URL,
            PROVIDER_CA_FILE. Secrets can also be given as files: AMQP_URL_FILE, DATABASE_URL_FILE, ….

            Exit codes: 0 success, 1 findings or no effect, 64 usage, 65 invalid input, 66 not found, 69 unavailable,
            70 unexpected answer, 75 try again later, 77 no permission, 78 configuration.
            """,
        version: "pushctl \(Build.version)",
        subcommands: [
            DoctorCommand.self, StatusCommand.self, TailCommand.self, AppCommand.self, TopologyCommand.self,
            MigrateCommand.self, DevicesCommand.self, CampaignsCommand.self, TokenCommand.self,
            PublishCommand.self, SendCommand.self, TriggerCommand.self, TestDeviceCommand.self, ChannelsCommand.self,
            TopicsCommand.self, FeedbackCommand.self, ExplainCommand.self, RevokeCommand.self,
            KeysCommand.self, RulesCommand.self, RuleTool.Catalog.self, DeadCommand.self,
            DeadRowsCommand.self, CensusCommand.self, ContractsCommand.self,
        ])

    /// Runs the command. A ``CommandError`` ends the process with its own exit code.
    static func main() async {
        do {
            var command = try parseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch let error as CommandError {
            OutputOption.remark("Error: \(error)")
            Foundation.exit(error.status.rawValue)
        } catch {
            exit(withError: error)
        }
    }
}
