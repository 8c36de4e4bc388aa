import Foundation
import HTTPGate
import Logging
import Messaging
import PushProtocol
import ServiceKit
import ServiceLifecycle

/// The first stage: what happened becomes who shall hear of it.
@main
struct RulesApp {
    static func main() async {
        if let tool = RuleTool(Array(CommandLine.arguments.dropFirst())) { answer(tool.run()) }
        await ServiceMain.run(
            "rules", summary: "Decides which users hear of a domain event, and how.", keys: .rules, build: build)
    }

    static func build(_ context: ServiceContext) async throws -> ServiceAssembly {
        let directory = try context.settings.string(.rulesDirectory)
        let book = try rules(in: directory)
        let shelf = RuleShelf(book)
        for ruleSet in book.ruleSets.values {
            context.logger.info(
                "Rules taken",
                metadata: [
                    LogKey.app: "\(ruleSet.app)", LogKey.version: "\(ruleSet.version)",
                    LogKey.count: "\(ruleSet.rules.count)",
                ])
        }

        let verifier = try await BearerVerifier(
            try context.apps(using: .bearer),
            fetch: BearerVerifier.fetch(caFile: try context.settings.optionalString(.rulesCAFile)),
            longest: try context.settings.duration(.bearerLifetime),
            logger: context.logger)
        let bus = try context.bus(
            queues: [.rulesEvents, .rulesOutcomes, .rulesErasures], publishingTo: [.notifications])
        let database = try context.database(schema: "rules", migration: 11)

        let courtesy = Courtesy()
        let events = try context.stage(
            "events", queues: [.rulesEvents], on: bus,
            handler: EventHandler(shelf: shelf, store: DecisionStore(pool: database.pool), courtesy: courtesy))
        let outcomes = try context.stage(
            "outcomes", queues: [.rulesOutcomes], on: bus,
            handler: OutcomeHandler(store: OutcomeStore(pool: database.pool)))
        let erasures = try context.stage(
            "erasures", queues: [.rulesErasures], on: bus,
            handler: ErasureHandler(store: ErasureStore(pool: database.pool)))

        let reloader = RuleReloader(directory: directory, shelf: shelf, logger: context.logger)
        let releaser = Releaser(
            service: context.name, store: HeldStore(pool: database.pool), shelf: shelf, bus: bus.bus,
            courtesy: courtesy, logger: context.logger)
        let teller = CrowdTeller(
            service: context.name, store: CrowdStore(decisions: DecisionStore(pool: database.pool)), shelf: shelf,
            bus: bus.bus, courtesy: courtesy, logger: context.logger)
        let bundler = Bundler(store: DigestStore(pool: database.pool), shelf: shelf, logger: context.logger)
        let reporter = Reporter(
            service: context.name, store: ReportStore(pool: database.pool), bus: bus.bus, logger: context.logger)
        let corrector = BadgeCorrector(
            service: context.name, store: BadgeStore(pool: database.pool), shelf: shelf, bus: bus.bus,
            logger: context.logger)
        let hub = InboxHub(store: NewsStore(pool: database.pool), shelf: shelf, logger: context.logger)
        let terms = try HistoryTerms(context.settings)
        let sweeper = Sweeper(
            remnants: RemnantStore(pool: database.pool, history: terms.history),
            history: HistoryStore(pool: database.pool), terms: terms, logger: context.logger)
        let tallier = Tallier(store: TallyStore(pool: database.pool), logger: context.logger)
        let api = RulesAPI(
            pool: database.pool, shelf: shelf,
            gate: BearerGate(
                verifier, limit: RateGate("user", perMinute: try context.settings.integer(.rulesUserRequests)),
                logger: context.logger),
            keys: KeyGate(
                APIKeyStore(database.pool, schema: "rules"), master: nil,
                limit: RateGate("key", perMinute: try context.settings.integer(.rulesKeyRequests)),
                logger: context.logger), hub: hub)
        let server = try context.server(
            api.router, host: .rulesHost, port: .rulesPort,
            connections: StreamRoutes.mostOfAll + HTTPServerLimits.usualConnections)
        return ServiceAssembly(
            database.services + bus.services
                + [
                    reloader, sweeper, tallier, reporter, releaser, teller, bundler, corrector,
                    KeyRefresher(verifier.rings),
                    events, outcomes, erasures, hub, server,
                ])
    }

    private static func answer(_ answer: RuleTool.Answer) -> Never {
        for line in answer.lines { print(line) }
        for line in answer.complaints { FileHandle.standardError.write(Data("\(line)\n".utf8)) }
        fflush(nil)
        exit(answer.code)
    }

    /// The rule files of a folder, each mistake in them a line of its own.
    private static func rules(in directory: String) throws(ConfigurationError) -> RuleBook {
        do {
            return try RuleDirectory.load(directory)
        } catch {
            throw ConfigurationError(error.problems.map { "\(directory)/\($0)" })
        }
    }
}
