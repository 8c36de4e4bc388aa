package import PushProtocol
package import ServiceKit
package import ServiceLifecycle
import Messaging
import Providers
import PushSending
import ServiceConnections

extension ServiceContext {
    /// Assembles a sender: consumes the pushes of `catalog`, sends them through `gateways` and publishes outcomes. Adds
    /// new apps of the apps file while it runs.
    ///
    /// - Parameters:
    ///   - services: further services of the provider. They stop after the stage.
    ///   - other: a further stage of the sender.
    package func sender(
        to provider: Provider, catalog: AppCatalog, using files: AppCatalog.Files, gateways: some SenderGateways,
        with services: [any Service] = [], beside other: SenderStage? = nil
    ) throws(ConfigurationError) -> ServiceAssembly {
        let routes = ProviderRoutes(gateways.byRoute, provider: provider, logger: logger)
        for (route, reason) in gateways.unusableRoutes { routes.trip(route, misconfigured: reason) }
        register(routes.all, of: routes)
        let current = CurrentGateways(gateways)

        let queues = WorkQueue.pushes(provider, of: catalog.ids)
        let bus = try bus(
            queues: queues + (other?.queues ?? []), publishingTo: [.outcomes, .census] + (other?.exchanges ?? []),
            reading: [.senderRevocations])
        let otherStage = try other?.assemble(self, bus)
        let revocations = Revocations(provider: provider, logger: logger)
        let stream = try read(.senderRevocations, on: bus, apply: revocations.add, onGap: { revocations.noteGap() })
        let handler = PushStageHandler(
            provider: provider, routes: routes, executors: { current.executor(of: $0) }, revocations: revocations,
            logger: logger)
        let stage = try stage(queues: queues, policy: handler.policy, on: bus, handler: handler)
        let supervisor = RouteSupervisor(routes: routes, provider: provider, pause: stage.pause, resume: stage.resume)

        let credentials = CredentialWatcher(
            { current.watchedFiles }, routes: routes, provider: provider, logger: logger)
        // Degrades readiness only, because the old credential still works.
        readiness.register("credential-files") { credentials.problem.map { .degraded($0) } ?? .holds }

        let reloader = try appReloader(
            catalog, using: files, consuming: { WorkQueue.pushes(provider, of: [$0.id]) }, publishingTo: []
        ) { app, queues in
            let added = try await current.add(app)
            routes.add(added.routes)
            register(Array(added.routes.keys), of: routes)
            for queue in queues { stage.consume(queue) }
            // After the queues are consumed: an open circuit breaker pauses them.
            for (route, reason) in added.unusable { routes.trip(route, misconfigured: reason) }
        }

        return ServiceAssembly(
            [ProviderClients({ current.clients }, provider: provider), credentials] + bus.services
                + [censusReporter(on: bus)] + stream.services + services + [otherStage].compactMap(\.self) + [
                    StartAfterCatchUp(stream.reader, stage), supervisor, reloader,
                ])
    }

    /// Registers a condition for each route. It degrades readiness only, because other apps still work.
    private func register(_ added: [ProviderRoute], of routes: ProviderRoutes) {
        for route in added {
            readiness.register("lane-\(route)") {
                (routes.openCause(of: route) ?? routes.thirdPartyOpenCause(of: route))
                    .map { .degraded($0.reason) } ?? .holds
            }
        }
    }
}
