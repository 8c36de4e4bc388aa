import HTTPAuth
import Messaging
import Postgres
import Providers
import PushProtocol
import RegistryStore
import ServiceConnections
import ServiceKit

/// Owns devices: resolves notifications to users into pushes to devices, and takes registrations over HTTP and the bus.
@main struct TokenRegistryApp {
    static func main() async {
        await ServiceMain.run(
            "token-registry", summary: "Resolve notifications to users into pushes to devices.",
            keys: .tokenRegistry, build: build)
    }

    /// Database connections for the operator API and API keys.
    static let operatorConnections = 2

    /// Builds connections, handlers and workers, in dependency order.
    static func build(_ context: ServiceContext) async throws -> ServiceAssembly {
        let catalog = try context.apps(using: .bearer)
        let verifier = try await context.bearerVerifier(catalog, caFile: .registryCAFile)
        let database = try context.database(schema: "registry", migration: 13)
        let notificationQueues = WorkQueue.notifications(of: catalog.ids)
        let deviceQueues = WorkQueue.devices(of: catalog.ids)
        let bus = try context.bus(
            queues: notificationQueues + deviceQueues + [.registryCampaigns],
            publishingTo: [.pushes, .outcomes, .devices, .census, .events],
            apps: catalog.ids)
        let tokens = try TokenKeys(
            file: try context.settings.optionalString(.registryTokenKeysFile), logger: context.logger)
        let store = RegistrationStore(
            database.pool, tokens: tokens, devicesPerUser: try context.settings.integer(.registryDevicesPerUser))

        // A separate pool, so that operator requests do not block devices and stages.
        let operators = PostgresPool(
            configuration: try context.postgres(poolSize: Self.operatorConnections), logger: context.logger)
        let campaigns = CampaignStore(database.pool, tokens: tokens)
        let bulkThrottle = BulkThrottle()
        // Each app has three queues: two lanes of notifications, and device commands.
        let connections = try context.settings.integer(.databasePoolSize)
        let policy: @Sendable (WorkQueue) -> StagePolicy = {
            $0.app == nil ? StagePolicy() : .perApp(connections: connections, queues: 3)
        }
        let apps = ActiveApps(catalog)
        let fids = FIDHalts(store: FIDStore(database.pool), apps: apps, logger: context.logger)

        let notifications = try context.stage(
            "notifications", queues: notificationQueues, policy: policy, on: bus,
            handler: NotificationHandler(
                store: store, campaigns: campaigns, apps: apps, bulkThrottle: bulkThrottle,
                fids: { fids.preference }))
        let commands = try context.stage(
            "commands", queues: deviceQueues, policy: policy, on: bus,
            handler: DeviceCommandHandler(store: store, apps: apps, logger: context.logger))

        let api = RegistryAPI(
            store: store,
            operators: RegistrationStore(operators, tokens: tokens, devicesPerUser: store.devicesPerUser),
            gate: BearerAuthenticator(
                verifier, limit: RateLimiter("user", perMinute: try context.settings.integer(.registryUserRequests)),
                logger: context.logger),
            keys: APIKeyAuthenticator(
                APIKeyStore(operators, schema: "registry"),
                master: try context.settings.optionalString(.registryOperatorKey),
                limit: RateLimiter("key", perMinute: try context.settings.integer(.registryKeyRequests)),
                logger: context.logger),
            changes: RateLimiter(
                "changes", try context.settings.integer(.registryUserChanges), per: .seconds(86_400)),
            apps: apps, publishCursors: CampaignRoutes.publisher(on: bus.bus, from: context.name),
            webPush: WebPushTerms(
                policy: .init(privateNetworks: try context.settings.boolean(.webPushPrivateNetworks)),
                isServed: { apps.hasWebPush($0) }),
            isWebOrigin: { apps.listsWebOrigin($0) })
        let server = try context.server(
            api.router, host: .registryHost, port: .registryPort,
            connections: try context.settings.integer(.registryConnections))

        let relay = OutboxRelay(
            service: context.name, store: OutboxStore(database.pool), bus: bus.bus,
            isReported: { apps.wants(.deadDevice, of: $0) }, logger: context.logger)
        let terms = try RetentionTerms(context.settings)
        let clock = DatabaseClock(database.pool)
        let sweeper = StaleSweeper(
            store: SweepStore(database.pool, terms: terms, logger: context.logger), now: clock.now,
            logger: context.logger)
        let history = HistorySweeper(
            store: HistoryStore(database.pool, terms: terms, logger: context.logger), now: clock.now,
            logger: context.logger)
        let probe = QueueProbe(try context.amqp("campaigns"))
        let runner = CampaignRunner(
            service: context.name, store: campaigns, bus: bus.bus, depth: { try await probe.status(of: $0)?.messages },
            bulkThrottle: bulkThrottle, fids: { fids.preference }, logger: context.logger)
        let lists = ListSweeper(store: campaigns, bulkThrottle: bulkThrottle, logger: context.logger)
        let rewriter = TokenRewriter(
            store: TokenRewriteStore(database.pool, tokens: tokens, logger: context.logger), bulkThrottle: bulkThrottle,
            logger: context.logger)
        let lateActivities = LateActivityWorker(
            service: context.name, states: LiveStateStore(database.pool, logger: context.logger), registrations: store,
            bus: bus.bus, now: clock.now, logger: context.logger)
        let keys = KeyRefresher(verifier)
        let reloader = try context.appReloader(
            catalog, using: .bearer,
            consuming: { WorkQueue.notifications(of: [$0.id]) + WorkQueue.devices(of: [$0.id]) },
            publishingTo: [.pushes]
        ) { app, queues in
            try await verifier.add(app)
            apps.insert(app)
            for queue in queues {
                if case .registryAppDevices = queue { commands.consume(queue) }
                if case .registryAppNotifications = queue { notifications.consume(queue) }
            }
        }
        return ServiceAssembly(
            database.services + [operators] + bus.services + [
                context.censusReporter(on: bus), relay, sweeper, history, lists, runner, fids, lateActivities, keys,
                notifications, commands, reloader, server,
            ] + (tokens.isConfigured ? [rewriter] : []))
    }
}

extension ConfigurationKey {
    static let registryHost = ConfigurationKey(
        "REGISTRY_HOST", default: "127.0.0.1",
        summary: "Address of the HTTP API; 0.0.0.0 in a container.")
    static let registryPort = ConfigurationKey(
        "REGISTRY_PORT", .port, default: "8080", summary: "Port of the HTTP API.")
    static let registryDevicesPerUser = ConfigurationKey(
        "REGISTRY_DEVICES_PER_USER", .integer(1...10_000), default: "\(RegistrationStore.defaultDevicesPerUser)",
        summary: "Maximum active registrations of a user in an app; beyond it, the longest unseen one is evicted.")
    static let registryOperatorKey = ConfigurationKey(
        "REGISTRY_OPERATOR_KEY", .longSecret(bytes: 32), secret: true,
        summary: "An API key with all permissions in the operator API, in addition to keys of `pushctl keys`.")
    static let registryUserRequests = ConfigurationKey(
        "REGISTRY_USER_REQUESTS", .integer(0...1_000_000), default: "120",
        summary: "Maximum requests a minute for each user; 0 for no limit.")
    static let registryUserChanges = ConfigurationKey(
        "REGISTRY_USER_CHANGES", .integer(0...1_000_000), default: "100",
        summary:
            "Maximum registrations a user begins and ends a day, also in a burst; repeats do not count; 0 for no limit."
    )
    static let registryConnections = ConfigurationKey(
        "REGISTRY_CONNECTIONS", .integer(1...1_000_000), default: "\(HTTPServerLimits.defaultConnections)",
        summary: "Maximum concurrent HTTP connections; further ones are answered 503.")
    static let registryKeyRequests = ConfigurationKey(
        "REGISTRY_KEY_REQUESTS", .integer(0...1_000_000), default: "6000",
        summary: "Maximum requests a minute for each API key; 0 for no limit.")
    static let registryEndedDays = ConfigurationKey(
        "REGISTRY_ENDED_DAYS", .integer(RetentionTerms.least...36_500),
        default: "\(RetentionTerms.usual.ended.components.seconds / 86_400)",
        summary: "Days to keep ended registrations and memberships.")
    static let registryRecordDays = ConfigurationKey(
        "REGISTRY_RECORD_DAYS", .integer(RetentionTerms.least...36_500),
        default: "\(RetentionTerms.usual.records.components.seconds / 86_400)",
        summary: "Days to keep campaigns and imports after their end; inactive campaigns expire after as long.")
    static let registryCAFile = ConfigurationKey(
        "REGISTRY_CA_FILE", .file,
        summary: "PEM file of CA certificates for JWK set URLs; the system's trust store when absent.")
}

extension [ConfigurationKey] {
    static let tokenRegistry: [ConfigurationKey] =
        .amqp + .postgres + .apps + [
            .registryHost, .registryPort, .registryDevicesPerUser, .registryOperatorKey, .registryUserRequests,
            .registryKeyRequests, .registryUserChanges, .registryConnections, .bearerLifetime, .registryEndedDays,
            .registryRecordDays, .registryCAFile, .registryTokenKeysFile, .webPushPrivateNetworks,
        ]
}

extension RetentionTerms {
    init(_ settings: Settings) throws(ConfigurationError) {
        self.init(
            ended: .seconds(86_400 * (try settings.integer(.registryEndedDays))),
            records: .seconds(86_400 * (try settings.integer(.registryRecordDays))))
    }
}
