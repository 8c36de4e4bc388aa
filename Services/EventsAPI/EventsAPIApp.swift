import AMQP
import DecisionLog
import HTTPAuth
import Logging
import Postgres
import PushProtocol
import ServiceConnections
import ServiceKit
import ServiceLifecycle

/// Accepts events over HTTP and publishes them to the bus, as upstream services do over AMQP.
@main
struct EventsAPIApp {
    static func main() async {
        await ServiceMain.run(
            "events-api", summary: "Accepts events over HTTP, and answers after the broker's confirm.",
            keys: .eventsAPI, build: build)
    }

    /// The number of database connections for requests that wait for decisions.
    static let waitingConnections = 2

    static func build(_ context: ServiceContext) async throws -> ServiceAssembly {
        let catalog = try context.apps(using: [])
        let apps = ActiveApps(catalog)
        let bus = try context.publisher(to: [.events], apps: catalog.ids)
        let database = try context.database(schema: "rules", migration: 16)
        // Separate, so that waiting requests take no connection from others.
        let waiting = PostgresPool(
            configuration: try context.postgres(poolSize: Self.waitingConnections), logger: context.logger)

        let limit = RateLimiter<String>("key", perMinute: try context.settings.integer(.eventsKeyEvents))
        let publisher = bus.publisher
        var api = PublishingAPI(
            callers: PublisherAuthenticator(
                keys: APIKeyAuthenticator(
                    APIKeyStore(database.pool, schema: "rules"), master: nil, limit: limit, logger: context.logger),
                limit: limit, isConfigured: { apps.contains($0) }),
            delivery: EventDelivery(
                publisher: EventPublisher(
                    service: context.name, deadline: try context.settings.duration(.eventsConfirmTime),
                    send: { messages throws(AMQPError) in try await publisher.publish(messages) }),
                waiter: DecisionWaiter(store: ExplanationStore(waiting), logger: context.logger)),
            budget: ByteBudget(try context.settings.integer(.eventsRequestBytes)),
            batchLimit: try context.settings.integer(.eventsBatchBytes))
        let (delivery, devices) = (api.delivery, MatrixDeviceCheck(store: ExplanationStore(waiting)))
        api.matrix = MatrixRoutes(
            keys: MatrixPushkey.keys(try context.settings.optionalString(.eventsMatrixKey) ?? ""),
            isConfigured: { apps.contains($0) }, publish: { await delivery.publisher.publish($0) },
            hasNoDevice: { await devices.hasNoDevice($0) })
        let server = try context.server(api.router, host: .eventsHost, port: .eventsPort)
        let reloader = try context.appReloader(
            catalog, using: [], consuming: { _ in [] }, publishingTo: [.events]
        ) { app, _ in apps.insert(app) }
        return ServiceAssembly(database.services + [waiting] + bus.services + [reloader, server])
    }
}
