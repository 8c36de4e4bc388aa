import Messaging
import PushProtocol
import PushSending
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
        let apps = try context.apps(using: .fcm)
        let settings = try FCMSettings(context.settings)
        let gateways = try await FCMGateways(
            apps: apps, settings: settings, eventLoopGroup: context.eventLoopGroup, logger: context.logger)
        let routes = ProviderRoutes(gateways.byRoute, provider: .fcm, logger: context.logger)
        for (route, reason) in gateways.unusable { routes.trip(route, misconfigured: reason) }
        for route in routes.all {
            // Degrades readiness only, because other apps still work.
            context.readiness.register("lane-\(route)") {
                (routes.openCause(of: route) ?? routes.thirdPartyOpenCause(of: route))
                    .map { .degraded($0.reason) } ?? .holds
            }
        }

        let queues = WorkQueue.pushes(.fcm, of: apps.ids)
        let bus = try context.bus(queues: queues, publishingTo: [.outcomes], reading: [.senderRevocations])
        let revocations = Revocations(provider: .fcm, logger: context.logger)
        let stream = try context.read(
            .senderRevocations, on: bus, apply: revocations.add, onGap: { revocations.noteGap() })
        let handler = PushStageHandler(
            provider: .fcm, routes: routes, executors: gateways.executors, revocations: revocations,
            logger: context.logger)
        let stage = try context.stage(queues: queues, policy: handler.policy, on: bus, handler: handler)
        let supervisor = RouteSupervisor(routes: routes, provider: .fcm, pause: stage.pause, resume: stage.resume)

        let quotaPeers = QuotaPeerCounter(
            quotas: gateways.quotas, configuration: try context.amqp("quota"), logger: context.logger)

        let accounts = CredentialWatcher(gateways.watched, routes: routes, provider: .fcm, logger: context.logger)
        // Degrades readiness only, because the old account still works.
        context.readiness.register("credential-files") { accounts.problem.map { .degraded($0) } ?? .holds }

        return ServiceAssembly(
            [ProviderClients(gateways.clients, provider: .fcm), accounts] + bus.services + stream.services
                + [quotaPeers, StartAfterCatchUp(stream.reader, stage), supervisor])
    }
}
