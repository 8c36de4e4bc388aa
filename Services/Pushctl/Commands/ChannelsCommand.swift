import AMQP
import ArgumentParser
import Foundation
import PushProtocol
import ServiceKit

/// `pushctl channels …`: an app's APNs broadcast channels, and what is said on them.
struct ChannelsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "channels", abstract: "APNs broadcast channels: one message for all who follow a Live Activity.",
        subcommands: [Create.self, Read.self, Delete.self, List.self, Send.self])

    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Makes a channel and prints its id.")
        @Option(help: "What APNs keeps for devices that are away: none or most-recent.")
        var storage = ChannelOperation.Storage.none
        @OptionGroup var channels: ChannelsOption

        func run() async throws { try await channels.perform(.create(storage)) }
    }

    struct Read: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Prints how a channel is set up.")
        @Argument(help: "The channel's id.") var channel: String
        @OptionGroup var channels: ChannelsOption

        func run() async throws { try await channels.perform(.read(channel: channel)) }
    }

    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Deletes a channel for good.")
        @Argument(help: "The channel's id.") var channel: String
        @OptionGroup var channels: ChannelsOption

        func run() async throws { try await channels.perform(.delete(channel: channel)) }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Prints the ids of the app's channels.")
        @OptionGroup var channels: ChannelsOption

        func run() async throws { try await channels.perform(.list) }
    }

    struct Send: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Hands a Live Activity update to the APNs sender, which retries and reports as for any push.")
        @Argument(help: "The channel's id.") var channel: String
        @Argument(help: "A file with the payload, “aps” and all, or - for standard input.") var file: String
        @Option(help: "10 (at once) or 5 (power-aware).") var priority: Int?
        @Option(help: "Seconds after which it is worth nothing; a channel without storage takes none.")
        var expiresIn: Int?
        @OptionGroup var channels: ChannelsOption

        func run() async throws {
            let (app, _) = try channels.configured()
            let payload: JSONValue
            do {
                payload = try WireCoding.decode(JSONValue.self, from: try PublishCommand.read(file))
            } catch let error as WireError {
                throw Refusal("\(file == "-" ? "standard input" : file): \(error)")
            }
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
            switch try await withBroker({ try await $0.publish(message) }) {
            case .confirmed: print("handed to the APNs sender as \(push.trace.id.uuidString.lowercased())")
            case .nacked: throw Refusal("the broker did not take the push: its queue is full; try again later")
            case .returned(_, let text):
                throw Refusal("no queue takes \(message.routingKey) (\(text)); run pushctl topology apply")
            }
        }
    }
}

extension ChannelOperation.Storage: ExpressibleByArgument {}
extension ProviderEnvironment: ExpressibleByArgument {}

/// Whose channels, and the way to them.
struct ChannelsOption: ParsableArguments {
    @Option(help: "The app.") var app: String
    @Option(help: "production or development; channels are not shared between them.")
    var environment = ProviderEnvironment.production
    @OptionGroup var apps: AppsOption

    func configured() throws -> (AppID, APNsAppConfiguration) {
        guard let id = AppID(rawValue: app), let configured = try apps.load()[id] else {
            throw Refusal("no app “\(app)” is in the apps file")
        }
        guard let apns = configured.apns else { throw Refusal("the app \(app) has no APNs credentials") }
        return (id, apns)
    }

    func perform(_ operation: ChannelOperation) async throws {
        let (_, apns) = try configured()
        let settings = try Environment.settings(ChannelDirectory.keys)
        let directory = try ChannelDirectory(apns, environment, settings)
        for line in try await directory.perform(operation) { print(line) }
    }
}
