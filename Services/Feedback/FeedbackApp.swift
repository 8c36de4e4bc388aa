import Messaging
import PushProtocol
import ServiceKit

/// Turns what providers say against tokens into evidence, and evidence into commands to the registry.
@main struct FeedbackApp {
    static func main() async {
        await ServiceMain.run(
            "feedback", summary: "Retires the registrations that providers say are gone.", keys: .amqp + .postgres,
            build: build)
    }

    /// Configuration, connections, handler, and what runs, in dependency order.
    static func build(_ context: ServiceContext) async throws -> ServiceAssembly {
        let database = try context.database(schema: "feedback", migration: 1)
        let bus = try context.bus(queues: [.feedbackOutcomes], publishingTo: [.devices])
        let stage = Stage(
            service: context.name, queues: [.feedbackOutcomes], bus: bus.bus,
            handler: OutcomeHandler(store: EvidenceStore(database.pool)), logger: context.logger)
        context.watch(stage, on: bus)
        return ServiceAssembly(database.services + bus.services + [stage])
    }
}
