import AMQP
import ArgumentParser
import Foundation
import Providers
import PushProtocol
import ServiceKit

/// `pushctl channels …`: manages an app's APNs broadcast channels and sends to them.
struct ChannelsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "channels", abstract: "Manage APNs broadcast channels and send Live Activity updates to them.",
        subcommands: [Create.self, Read.self, Delete.self, List.self, Send.self])

    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Create a channel and print its id.")
        @Option(help: "The storage policy for offline devices: none or most-recent.")
        var storage = ChannelOperation.Storage.none
        @OptionGroup var channels: ChannelsOption

        func run() async throws { try await channels.perform(.create(storage)) }
    }

    struct Read: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Print a channel's configuration.")
        @Argument(help: "The channel's id.") var channel: String
        @OptionGroup var channels: ChannelsOption

        func run() async throws { try await channels.perform(.read(channel: channel)) }
    }

    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Delete a channel permanently.")
        @Argument(help: "The channel's id.") var channel: String
        @OptionGroup var channels: ChannelsOption

        func run() async throws { try await channels.perform(.delete(channel: channel)) }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Print the ids of the app's channels.")
        @OptionGroup var channels: ChannelsOption

        func run() async throws { try await channels.perform(.list) }
    }

    struct Send: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Send a Live Activity update to a channel through the APNs sender, which retries and reports it.")
        @Argument(help: "The channel's id.") var channel: String
        @Argument(help: "A file with the payload including “aps”, or - for standard input.") var file: String
        @Option(help: "10 (immediately) or 5 (power-saving).") var priority: Int?
        @Option(help: "Seconds until the update expires; not for a channel without storage.")
        var expiresIn: Int?
        @OptionGroup var channels: ChannelsOption

        func run() async throws {
            let (app, _) = try channels.configured()
            let payload = try PublishCommand.json(file)
            let now = Timestamp.now
            let push = try ChannelBroadcast(
                app: app, environment: channels.environment, channel: channel, payload: payload, priority: priority,
                expiresAt: expiresIn.map { now + .seconds($0) }
            ).push(at: now)
            let message = AMQPMessage(
                exchange: ExchangeName.pushes.name, routingKey: RoutingKey.push(.apns, push.lane, push.app),
                properties: AMQPProperties(
                    contentType: "application/json", messageID: push.trace.id.uuidString.lowercased(),
                    type: Push.messageType),
                body: try push.wireBody())
            try await publish(message, "push")
            try channels.output.write(
                ["id": .id(push.trace.id), "channel": .string(channel)],
                text: ["queued for the APNs sender as \(push.trace.id.uuidString.lowercased())"])
        }
    }
}

extension ChannelOperation.Storage: ExpressibleByArgument {}
extension ProviderEnvironment: ExpressibleByArgument {}

/// The app and environment whose channels a command uses.
struct ChannelsOption: ParsableArguments {
    @Option(help: "The app.") var app: String
    @Option(help: "production or development; each has its own channels.")
    var environment = ProviderEnvironment.production
    @OptionGroup var apps: AppsOption
    @OptionGroup var output: OutputOption

    func configured() throws -> (AppID, APNsAppConfiguration) {
        let configured = try apps.app(app)
        guard let apns = configured.apns else {
            throw CommandError("the app \(app) has no APNs credentials", .configuration)
        }
        return (configured.id, apns)
    }

    func perform(_ operation: ChannelOperation) async throws {
        let (_, apns) = try configured()
        let settings = try Environment.settings(ChannelManagementClient.keys)
        let directory = try ChannelManagementClient(apns, environment, settings)
        let result = try await directory.perform(operation)
        try output.write(result.json, text: result.lines)
    }
}
