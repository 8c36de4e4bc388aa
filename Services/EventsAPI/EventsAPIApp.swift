import AMQP
import DecisionLog
import HTTPAuth
import Logging
import Messaging
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
        let files: AppCatalog.Files = [.bearer, .publishers]
        let catalog = try context.apps(using: files)
        let apps = ActiveApps(catalog)
        let outgoing = try context.publisher(to: [.events], apps: catalog.ids)
        let database = try context.database(schema: "rules", migration: 16)
        // Separate, so that waiting requests take no connection from others.
        let waiting = PostgresPool(
            configuration: try context.postgres(poolSize: Self.waitingConnections), logger: context.logger)

        let users = try await context.bearerVerifier(catalog, of: .user, caFile: .eventsCAFile)
        let publishers = try await context.bearerVerifier(catalog, of: .publisher, caFile: .eventsCAFile)
        let limit = RateLimiter<String>("key", perMinute: try context.settings.integer(.eventsKeyEvents))
        let bus = outgoing.publisher
        let publisher = EventPublisher(
            service: context.name, deadline: try context.settings.duration(.eventsConfirmTime),
            tracing: outgoing.tracer.map { PublishTracing($0) }, logger: context.logger,
            send: { messages throws(AMQPError) in try await bus.publish(messages) })
        let explanations = ExplanationStore(waiting)
        let devices = MatrixDeviceCheck(store: explanations)
        let api = PublishingAPI(
            callers: PublisherAuthenticator(
                keys: APIKeyAuthenticator(
                    APIKeyStore(database.pool, schema: "rules"), master: nil, limit: limit, logger: context.logger),
                tokens: BearerAuthenticator(publishers, logger: context.logger), limit: limit,
                isConfigured: { apps.contains($0) }),
            delivery: EventDelivery(
                publisher: publisher, waiter: DecisionWaiter(store: explanations, logger: context.logger)),
            budget: ByteBudget(try context.settings.integer(.eventsRequestBytes)),
            batchLimit: try context.settings.integer(.eventsBatchBytes),
            matrix: MatrixRoutes(
                keys: MatrixPushkey.keys(try context.settings.optionalString(.eventsMatrixKey) ?? ""),
                isConfigured: { apps.contains($0) }, publish: { await publisher.publish($0) },
                hasNoDevice: { await devices.hasNoDevice($0) }),
            testPushes: TestPushRoutes(
                users: BearerAuthenticator(users, logger: context.logger), limits: TestPushLimits(),
                delivery: EventDelivery(
                    publisher: publisher,
                    waiter: DecisionWaiter(
                        store: explanations, maximumRequests: TestPushRoutes.maximumWaiting, logger: context.logger))),
            isWebOrigin: { apps.listsWebOrigin($0) })
        let server = try context.server(api.router, host: .eventsHost, port: .eventsPort)
        let reloader = try context.appReloader(
            catalog, using: files, consuming: { _ in [] }, publishingTo: [.events]
        ) { app, _ in
            try await users.add(app)
            try await publishers.add(app)
            apps.insert(app)
        }
        return ServiceAssembly(
            database.services + [waiting] + outgoing.services
                + [KeyRefresher(users, publishers), reloader, server])
    }
}
