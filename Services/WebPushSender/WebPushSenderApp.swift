import PushProtocol
import SenderService
import ServiceConnections
import ServiceKit

/// The executable `webpush-sender`: consumes pushes, sends them to the push services of browsers and publishes outcomes.
@main
struct WebPushSenderApp {
    static let keys: [ConfigurationKey] = .amqp + .apps + WebPushSettings.keys

    static func main() async {
        await ServiceMain.run(
            "webpush-sender", summary: "Sends pushes to browsers (Web Push) and publishes their outcomes.", keys: keys,
            build: build)
    }

    static func build(_ context: ServiceContext) async throws -> ServiceAssembly {
        let catalog = try context.apps(using: .webPush)
        let gateways = try await WebPushGateways(
            apps: catalog, settings: WebPushSettings(context.settings), eventLoopGroup: context.eventLoopGroup,
            logger: context.logger)
        let connections = IdleOrigins(pools: gateways.pools)
        return try context.sender(
            to: .webpush, catalog: catalog, using: .webPush, gateways: gateways, with: [connections])
    }
}
