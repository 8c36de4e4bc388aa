import PushProtocol
import SenderService
import ServiceConnections
import ServiceKit

/// The executable `fcm-sender`: consumes pushes, sends them to FCM and publishes outcomes.
@main
struct FCMSenderApp {
    static let keys: [ConfigurationKey] = .amqp + .apps + FCMSettings.keys

    static func main() async {
        await ServiceMain.run(
            "fcm-sender", summary: "Sends pushes to FCM and publishes their outcomes.", keys: keys, build: build)
    }

    static func build(_ context: ServiceContext) async throws -> ServiceAssembly {
        let catalog = try context.apps(using: .fcm)
        let gateways = try await FCMGateways(
            apps: catalog, settings: FCMSettings(context.settings), eventLoopGroup: context.eventLoopGroup,
            logger: context.logger)
        let quotaPeers = QuotaPeerCounter(
            quotas: gateways.quotas, configuration: try context.amqp("quota"), logger: context.logger)
        return try context.sender(to: .fcm, catalog: catalog, using: .fcm, gateways: gateways, with: [quotaPeers])
    }
}
