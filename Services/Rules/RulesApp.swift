import DecisionLog
import Foundation
import HTTPAuth
import Logging
import Messaging
import Postgres
import PushProtocol
import RuleDryRun
import RuleLanguage
import ServiceConnections
import ServiceKit
import ServiceLifecycle

/// The first stage: decides which users are notified of a domain event.
@main
struct RulesApp {
    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        if RuleTool.accepts(arguments) {
            RuleTool.run(arguments)
            return
        }
        await ServiceMain.run(
            "rules", summary: "Decides which users are notified of a domain event, and how.",
            commands: RuleTool.usage, keys: .rules, build: build)
    }

    /// The number of database connections for operator requests and API keys.
    static let operatorConnections = 2

    static func build(_ context: ServiceContext) async throws -> ServiceAssembly {
        let directory = try context.settings.string(.rulesDirectory)
        let catalog = try context.apps(using: .bearer)
        let apps = ActiveApps(catalog)
        let ruleSets = try rules(in: directory, of: apps)
        let currentRules = CurrentRules(ruleSets)
        for ruleSet in ruleSets.ruleSets.values {
            context.logger.info(
                "Rules loaded",
                metadata: [
                    LogKey.app: "\(ruleSet.app)", LogKey.version: "\(ruleSet.version)",
                    LogKey.count: "\(ruleSet.rules.count)",
                ])
        }

        for app in catalog.ids where ruleSets.ruleSets[app] == nil {
            context.logger.warnWithoutRuleFile(app)
        }
        let verifier = try await context.bearerVerifier(catalog, caFile: .rulesCAFile)
        let bus = try context.bus(
            queues: WorkQueue.events(of: catalog.ids) + [.rulesOutcomes, .rulesErasures, .rulesCensus, .rulesChannels],
            publishingTo: [.notifications, .census, .events, .devices, .channels], apps: catalog.ids)
        let database = try context.database(schema: "rules", migration: 26)

        let pool = database.pool
        let logger = context.logger
        // Separate, so that slow operator requests take no connection from users and stages.
        let operators = PostgresPool(
            configuration: try context.postgres(poolSize: Self.operatorConnections), logger: logger)
        let clock = DatabaseClock(pool)
        let now: @Sendable () async throws -> Timestamp = { try await clock.now() }

        let connections = try context.settings.integer(.databasePoolSize)
        let bulkThrottle = BulkThrottle()
        let recordedApps: @Sendable () -> Set<AppID> = { Set(apps.recordings.keys) }
        let decisions = DecisionStore(pool: pool, logger: logger, recordedApps: recordedApps)
        let events = try context.stage(
            "events", queues: WorkQueue.events(of: catalog.ids),
            policy: { EventHandler.policy(isOfOneApp: $0.app != nil, connections: connections) }, on: bus,
            handler: EventHandler(
                currentRules: currentRules, store: decisions,
                bulkThrottle: bulkThrottle, now: now, logger: logger))
        let outcomes = try context.stage(
            "outcomes", queues: [.rulesOutcomes], on: bus,
            handler: OutcomeHandler(store: OutcomeStore(pool: pool), now: now))
        let erasures = try context.stage(
            "erasures", queues: [.rulesErasures], on: bus,
            handler: ErasureHandler(store: ErasureStore(pool: pool), now: now))
        let census = try context.stage(
            "census", queues: [.rulesCensus], on: bus,
            handler: CensusHandler(store: CensusReportStore(pool: pool), now: now))
        let channels = ChannelStore(pool: pool, logger: logger)
        let channelAnswers = try context.stage(
            "channels", queues: [.rulesChannels], on: bus, handler: ChannelAnswerHandler(store: channels, now: now))
        let probe = QueueProbe(try context.amqp("census"))

        let inboxFeed = InboxFeed(
            store: InboxFeedStore(pool: pool, logger: logger), currentRules: currentRules, now: now, logger: logger)
        let terms = try HistoryTerms(context.settings)
        let ruleReloader = RuleReloader(
            directory: directory, currentRules: currentRules, apps: apps,
            condition: context.readiness.condition("rules", .waiting("the rule files are not checked yet")),
            logger: logger)
        let appReloader = try context.appReloader(
            catalog, using: .bearer, consuming: { [.rulesAppEvents($0.id)] },
            publishingTo: [.notifications, .events, .devices]
        ) { app, queues in
            // Before the first event: the rule file may be as new as the app. Before the keys, which a repeated call would
            // add again.
            apps.noteBorrowers(of: app)
            guard ruleReloader.look(againIfRefused: true) || currentRules.ruleSets.ruleSets[app.id] != nil else {
                throw ConfigurationError("the rule files in \(directory) are refused; see the log")
            }
            try await verifier.add(app)
            if currentRules.ruleSets.ruleSets[app.id] == nil { logger.warnWithoutRuleFile(app.id) }
            apps.insert(app)
            for queue in queues { events.consume(queue) }
        }
        func worker(_ worker: Worker) -> any Service {
            switch worker {
            case .ruleReloader: ruleReloader
            case .sweeper:
                Sweeper(
                    tombstones: TombstoneStore(pool: pool, history: terms.history), history: HistoryStore(pool: pool),
                    terms: terms,
                    recordings: Sweeper.RecordingSweep(
                        store: RecordingStore(pool: pool), terms: { apps.recordings }),
                    now: now, logger: logger)
            case .statsRollup: StatsRollup(store: StatsStore(pool: pool, logger: logger), now: now, logger: logger)
            case .variantGuard:
                VariantGuard(store: VariantStore(pool), currentRules: currentRules, now: now, logger: logger)
            case .deliveryReportWorker:
                DeliveryReportWorker(
                    service: context.name, store: ReportStore(pool: pool, logger: logger), bus: bus.bus, now: now,
                    logger: logger)
            case .scheduledSendWorker:
                ScheduledSendWorker(
                    service: context.name,
                    store: HeldStore(pool: pool, logger: logger, recordedApps: recordedApps),
                    currentRules: currentRules,
                    bus: bus.bus,
                    bulkThrottle: bulkThrottle, now: now, logger: logger)
            case .fanOutWorker:
                FanOutWorker(
                    service: context.name,
                    store: FanOutStore(decisions: decisions, logger: logger),
                    currentRules: currentRules, bus: bus.bus, bulkThrottle: bulkThrottle, now: now, logger: logger)
            case .digestWorker:
                DigestWorker(
                    store: DigestStore(pool: pool, logger: logger, recordedApps: recordedApps),
                    currentRules: currentRules, now: now, logger: logger)
            case .badgeCorrector:
                BadgeCorrector(
                    service: context.name, store: BadgeStore(pool: pool, logger: logger), currentRules: currentRules,
                    bus: bus.bus,
                    now: now, logger: logger)
            case .pushRevoker:
                PushRevoker(
                    service: context.name, store: PreferenceChangeStore(pool: pool, logger: logger),
                    currentRules: currentRules,
                    bus: bus.bus, now: now, logger: logger)
            case .notificationRevoker:
                NotificationRevoker(
                    service: context.name, store: RevocationStore(pool: pool, logger: logger),
                    currentRules: currentRules, bus: bus.bus, now: now, logger: logger)
            case .shownCopyClearer:
                ShownCopyClearer(
                    service: context.name, store: ClearCommandStore(pool: pool, logger: logger), bus: bus.bus, now: now,
                    logger: logger)
            case .channelKeeper:
                ChannelKeeper(
                    service: context.name, store: channels, currentRules: currentRules, bus: bus.bus, now: now,
                    logger: logger)
            case .inboxFeed: inboxFeed
            case .censusWorker:
                CensusWorker(
                    store: CensusStore(pool: pool), reports: CensusReportStore(pool: pool), table: CensusTable(pool),
                    apps: apps,
                    probe: { queue, isDead in try await probe.status(of: isDead ? queue.deadName : queue.name) },
                    now: now, logger: logger)
            }
        }
        let api = RulesAPI(
            pool: pool, operators: operators, currentRules: currentRules,
            gate: BearerAuthenticator(
                verifier, limit: RateLimiter("user", perMinute: try context.settings.integer(.rulesUserRequests)),
                logger: context.logger),
            keys: APIKeyAuthenticator(
                APIKeyStore(operators, schema: "rules"), master: nil,
                limit: RateLimiter("key", perMinute: try context.settings.integer(.rulesKeyRequests)),
                logger: context.logger), inboxFeed: inboxFeed, now: now,
            receiptReporter: ReceiptReporter(
                service: context.name, bus: bus.bus, isReported: { apps.wants(.receipt, of: $0) }),
            isWebOrigin: { apps.listsWebOrigin($0) })
        let server = try context.server(
            api.router, host: .rulesHost, port: .rulesPort,
            connections: StreamRoutes.maximumStreams + HTTPServerLimits.defaultConnections)
        return ServiceAssembly(
            database.services + [operators] + bus.services + [context.censusReporter(on: bus)]
                + Worker.allCases.map(worker)
                + [KeyRefresher(verifier), events, outcomes, erasures, census, channelAnswers, appReloader, server])
    }

    /// Loads the rule files of a folder. The error has a line for each mistake.
    private static func rules(in directory: String, of apps: ActiveApps) throws(ConfigurationError) -> RuleSets {
        do {
            return try RuleDirectory.load(
                directory, isConfigured: { apps.contains($0) }, isShared: { apps.sharesEvents(of: $0, with: $1) })
        } catch {
            throw ConfigurationError(error.problems.map { "\(directory)/\($0)" })
        }
    }
}

extension Logger {
    fileprivate func warnWithoutRuleFile(_ app: AppID) {
        warning(
            "An app has no rule file; it takes direct notifications only, and other events are dead-lettered",
            metadata: [LogKey.app: "\(app)"])
    }
}
