package import PushProtocol
package import ServiceKit
package import ServiceLifecycle
import Messaging
import PushSending
import ServiceConnections

extension ServiceContext {
    /// Assembles a sender: consumes the pushes of `apps`, sends them through `gateways` and publishes outcomes.
    ///
    /// - Parameter services: further services of the provider. They stop after the stage.
    package func sender(
        to provider: Provider, apps: [AppID], gateways: some SenderGateways, with services: [any Service] = []
    ) throws(ConfigurationError) -> ServiceAssembly {
        let routes = ProviderRoutes(gateways.byRoute, provider: provider, logger: logger)
        for (route, reason) in gateways.unusableRoutes { routes.trip(route, misconfigured: reason) }
        for route in routes.all {
            // Degrades readiness only, because other apps still work.
            readiness.register("lane-\(route)") {
                (routes.openCause(of: route) ?? routes.thirdPartyOpenCause(of: route))
                    .map { .degraded($0.reason) } ?? .holds
            }
        }

        let queues = WorkQueue.pushes(provider, of: apps)
        let bus = try bus(queues: queues, publishingTo: [.outcomes, .census], reading: [.senderRevocations])
        let revocations = Revocations(provider: provider, logger: logger)
        let stream = try read(.senderRevocations, on: bus, apply: revocations.add, onGap: { revocations.noteGap() })
        let handler = PushStageHandler(
            provider: provider, routes: routes, executors: gateways.executors, revocations: revocations,
            logger: logger)
        let stage = try stage(queues: queues, policy: handler.policy, on: bus, handler: handler)
        let supervisor = RouteSupervisor(routes: routes, provider: provider, pause: stage.pause, resume: stage.resume)

        let credentials = CredentialWatcher(gateways.watchedFiles, routes: routes, provider: provider, logger: logger)
        // Degrades readiness only, because the old credential still works.
        readiness.register("credential-files") { credentials.problem.map { .degraded($0) } ?? .holds }

        return ServiceAssembly(
            [ProviderClients(gateways.clients, provider: provider), credentials] + bus.services
                + [censusReporter(on: bus)] + stream.services + services + [
                    StartAfterCatchUp(stream.reader, stage), supervisor,
                ])
    }
}
