import Messaging
import PushProtocol
import PushSending
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
        let apps = try context.apps(using: .apns)
        let settings = try APNsSettings(context.settings)
        let gateways = try await APNsGateways(
            apps: apps, settings: settings, eventLoopGroup: context.eventLoopGroup, logger: context.logger)
        let routes = ProviderRoutes(gateways.byRoute, provider: .apns, logger: context.logger)
        for (route, reason) in gateways.unusable { routes.trip(route, misconfigured: reason) }
        for route in routes.all {
            // Degrades readiness only, because other apps still work.
            context.readiness.register("lane-\(route)") {
                routes.openCause(of: route).map { .degraded($0.reason) } ?? .holds
            }
        }

        let queues = WorkQueue.pushes(.apns, of: apps.ids)
        let bus = try context.bus(queues: queues, publishingTo: [.outcomes], reading: [.senderRevocations])
        let revocations = Revocations(provider: .apns, logger: context.logger)
        let stream = try context.read(
            .senderRevocations, on: bus, apply: revocations.add, onGap: { revocations.noteGap() })
        let handler = PushStageHandler(
            provider: .apns, routes: routes, executors: gateways.executors, revocations: revocations,
            logger: context.logger)
        let stage = try context.stage(queues: queues, policy: handler.policy, on: bus, handler: handler)
        let supervisor = RouteSupervisor(routes: routes, provider: .apns, pause: stage.pause, resume: stage.resume)

        let credentials = CredentialWatcher(gateways.watched, routes: routes, provider: .apns, logger: context.logger)
        // Degrades readiness only, because the old credential still works.
        context.readiness.register("credential-files") { credentials.problem.map { .degraded($0) } ?? .holds }

        return ServiceAssembly(
            [ProviderClients(gateways.clients, provider: .apns), credentials] + bus.services + stream.services
                + [StartAfterCatchUp(stream.reader, stage), supervisor])
    }
}
