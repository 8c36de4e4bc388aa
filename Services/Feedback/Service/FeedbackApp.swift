import FeedbackStore
import Messaging
import PushProtocol
import ServiceConnections
import ServiceKit

/// Stores providers' reports about device tokens as evidence, and turns evidence into commands to the registry.
@main struct FeedbackApp {
    static let keys: [ConfigurationKey] = .amqp + .postgres + FeedbackSettings.keys

    static func main() async {
        await ServiceMain.run(
            "feedback", summary: "Deactivates registrations that providers report as gone, on evidence.", keys: keys,
            build: build)
    }

    /// Creates settings, connections, handlers and services, in dependency order.
    static func build(_ context: ServiceContext) async throws -> ServiceAssembly {
        let settings = try FeedbackSettings(context.settings)
        let database = try context.database(schema: "feedback", migration: 6)
        let clock = DatabaseClock(database.pool)
        let bus = try context.bus(queues: [.feedbackOutcomes, .feedbackErasures], publishingTo: [.devices, .census])
        let stage = try context.stage(
            queues: [.feedbackOutcomes], on: bus,
            handler: OutcomeHandler(
                store: EvidenceStore(database.pool, settlingTime: settings.settlingTime, now: clock.now)))
        let erasures = try context.stage(
            "erasures", queues: [.feedbackErasures], on: bus,
            handler: ErasureHandler(store: ErasureStore(database.pool)))

        let store = EvaluationStore(
            database.pool, guardRule: settings.guardRule, suspicionRule: settings.suspicionRule)
        let evaluator = EvidenceEvaluator(
            store: store, evidenceRetention: settings.retention,
            publisher: CommandPublisher(
                service: context.name, store: store, bus: bus.bus, now: clock.now, logger: context.logger),
            now: clock.now, logger: context.logger)
        context.readiness.register("guard") { evaluator.condition }
        return ServiceAssembly(
            database.services + bus.services + [context.censusReporter(on: bus), evaluator, stage, erasures])
    }
}
