import ArgumentParser
import RuleDryRun
import ServiceKit

/// The operator's command line. It reads the same settings as the services.
@main struct PushctlApp: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pushctl",
        abstract:
            "Operate Heliograph: apps, topology, migrations, devices, campaigns, dead letters, dead rows, evidence, keys, tokens, events, topics, rules.",
        discussion: """
            Reads the services' own variables: AMQP_URL, AMQP_CA_FILE, DATABASE_URL, HELIOGRAPH_ALLOW_PLAINTEXT,
            HELIOGRAPH_APPS, REGISTRY_URL, REGISTRY_OPERATOR_KEY, APNS_CHANNELS_URL, APNS_CHANNELS_SANDBOX_URL,
            PROVIDER_CA_FILE. Secrets can also be given as files: AMQP_URL_FILE, DATABASE_URL_FILE, ….
            """,
        version: "pushctl \(Build.version)",
        subcommands: [
            AppCommand.self, TopologyCommand.self, MigrateCommand.self, DevicesCommand.self, CampaignsCommand.self,
            TokenCommand.self,
            PublishCommand.self, SendCommand.self, TriggerCommand.self, TestDeviceCommand.self, ChannelsCommand.self,
            TopicsCommand.self, FeedbackCommand.self, ExplainCommand.self,
            KeysCommand.self, RulesCommand.self, RuleTool.Catalog.self, DeadCommand.self,
            DeadRowsCommand.self, CensusCommand.self, ContractsCommand.self,
        ])
}
