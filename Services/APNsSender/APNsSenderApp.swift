import PushProtocol
import SenderService
import ServiceConnections
import ServiceKit

/// The executable `apns-sender`: consumes pushes, sends them to APNs and publishes outcomes.
@main
struct APNsSenderApp {
    static let keys: [ConfigurationKey] = .amqp + .apps + APNsSettings.keys

    static func main() async {
        await ServiceMain.run(
            "apns-sender", summary: "Sends pushes to APNs and publishes their outcomes.", keys: keys, build: build)
    }

    static func build(_ context: ServiceContext) async throws -> ServiceAssembly {
        let catalog = try context.apps(using: .apns)
        let gateways = try await APNsGateways(
            apps: catalog, settings: APNsSettings(context.settings), eventLoopGroup: context.eventLoopGroup,
            logger: context.logger)
        let handler = ChannelRequestHandler(channels: gateways.channels, logger: context.logger)
        let channels = SenderStage(queues: [.apnsSenderChannels], publishingTo: [.channels]) {
            context, bus throws(ConfigurationError) in
            try context.stage("channels", queues: [.apnsSenderChannels], on: bus, handler: handler)
        }
        return try context.sender(
            to: .apns, catalog: catalog, using: .apns, gateways: gateways, beside: channels)
    }
}
