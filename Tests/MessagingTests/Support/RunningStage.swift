import AMQP
import Logging
import Messaging
import Primitives
import PushProtocol
import ServiceLifecycle
import TestSupport

extension StagePolicy {
    /// A policy with short waits.
    static func test(
        batchSize: Int = 10, prefetch: UInt16 = 20, concurrentBatches: Int = 2,
        unroutableRounds: Int? = 3, drainDeadline: Duration = .seconds(60)
    ) -> StagePolicy {
        StagePolicy(
            batchSize: batchSize, batchLinger: .milliseconds(2), prefetch: prefetch,
            concurrentBatches: concurrentBatches,
            unroutableRounds: unroutableRounds, drainDeadline: drainDeadline,
            backoff: Backoff(base: .milliseconds(1), cap: .milliseconds(5)))
    }
}

/// Runs a stage during `body`, then drains it and waits for its end.
func withStage(
    _ bus: any MessageBus, _ handler: some StageHandler, queues: [WorkQueue] = [queue], policy: StagePolicy = .test(),
    logger: Logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
    _ body: (Stage) async throws -> Void
) async throws {
    let stage = Stage(service: "rules", queues: queues, policy: policy, bus: bus, handler: handler, logger: logger)
    try await withRunning(stage) { _ in try await body(stage) }
}

extension InMemoryBus {
    /// Publishes an event of the app `demo`.
    func event(_ text: String, properties: AMQPProperties = .init()) {
        send(to: "events", "demo.happened", Array(text.utf8), properties: properties)
    }

    /// Publishes events of the app `demo` in order.
    func send(_ texts: [String]) { for text in texts { event(text) } }

    func texts(in queue: String) -> [String] { messages(in: queue).map(\.text) }
}

/// Runs `stage` during `body`, which may shut it down.
func withRunning(
    _ stage: some Service, _ body: (_ shutDown: @Sendable () async -> Void) async throws -> Void
) async throws {
    let group = ServiceGroup(
        configuration: .init(
            services: [.init(service: stage, successTerminationBehavior: .gracefullyShutdownGroup)],
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }))
    async let running: Void = group.run()
    do {
        try await body { await group.triggerGracefulShutdown() }
    } catch {
        await group.triggerGracefulShutdown()
        try await running
        throw error
    }
    await group.triggerGracefulShutdown()
    try await running
}
