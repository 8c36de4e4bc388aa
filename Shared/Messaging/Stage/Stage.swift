package import Logging
package import PushProtocol
package import Tracing
internal import ServiceLifecycle
internal import Synchronization

/// A processing stage: consumes queues, calls its handler, publishes the results, and settles.
///
/// The broker confirms all outbound messages before the input is settled, so a crash causes duplicates and never a
/// loss. Each queue has its own batches and limits.
///
/// Graceful shutdown cancels the consumers, requeues waiting deliveries, and finishes running batches. Place the stage
/// after its bus in a `ServiceGroup`, so that it drains first.
package final class Stage: Service, Sendable {
    private struct Workers {
        var all: [QueueWorker] = []
        var isDraining = false
    }

    private let policy: @Sendable (WorkQueue) -> StagePolicy
    private let bus: any MessageBus
    private let handler: ErasedHandler
    private let routing: RepublishRouting
    private let metrics: StageMetrics
    private let census: StageCensus?
    private let tracing: StageTracing?
    private let logger: Logger
    private let workers = Mutex(Workers())
    private let newWorkers: AsyncStream<QueueWorker>
    private let newWorkerContinuation: AsyncStream<QueueWorker>.Continuation

    /// - Parameters:
    ///   - service: The stage's name, such as `token-registry`: a metric label, the `app-id` of published messages, and
    ///     a header of dead letters.
    ///   - policy: The policy of each queue.
    ///   - tracer: Creates a span for each message with a trace; `nil` without tracing.
    package init(
        service: String, queues: [WorkQueue], policy: @escaping @Sendable (WorkQueue) -> StagePolicy,
        bus: any MessageBus, handler: some StageHandler, census: CensusLog? = nil, tracer: (any Tracer)? = nil,
        logger: Logger
    ) {
        self.policy = policy
        self.bus = bus
        tracing = tracer.map(StageTracing.init)
        let erased = ErasedHandler(handler)
        self.handler = erased
        self.census = census.map { StageCensus(log: $0, collect: erased.collectNotifications) }
        routing = RepublishRouting(service: service)
        metrics = StageMetrics(stage: service)
        var logger = logger
        logger[metadataKey: LogKey.stage] = "\(service)"
        self.logger = logger
        (newWorkers, newWorkerContinuation) = AsyncStream.makeStream()
        for queue in queues { consume(queue) }
    }

    /// Runs until graceful shutdown, or until the bus closes. Cancellation ends it without settling; the broker
    /// redelivers the messages.
    package func run() async throws {
        await withGracefulShutdownHandler {
            await withDiscardingTaskGroup { group in
                for await worker in newWorkers {
                    group.addTask(executorPreference: worker.policy.executor) {
                        await worker.run()
                        self.workerEnded()
                    }
                }
            }
        } onGracefulShutdown: {
            self.drain()
        }
    }

    /// Adds a queue, such as that of a newly configured app. Ignores a queue that is already consumed.
    package func consume(_ queue: WorkQueue) {
        let new = workers.withLock { workers -> QueueWorker? in
            guard !workers.isDraining, !workers.all.contains(where: { $0.queue == queue }) else { return nil }
            let worker = makeWorker(queue)
            workers.all.append(worker)
            return worker
        }
        if let new { newWorkerContinuation.yield(new) }
    }

    /// Cancels the consumer of `queue`, requeues waiting deliveries, and lets running batches finish. Returns after the
    /// last delivery. Other queues continue.
    package func pause(_ queue: WorkQueue) async { await worker(of: queue)?.pause() }

    /// Consumes `queue` again.
    package func resume(_ queue: WorkQueue) async { worker(of: queue)?.resume() }

    package var status: [QueueStatus] {
        workers.withLock(\.all).map { QueueStatus(queue: $0.queue, state: $0.state) }
    }

    private func worker(of queue: WorkQueue) -> QueueWorker? {
        workers.withLock(\.all).first { $0.queue == queue }
    }

    private func drain() {
        let all = workers.withLock { workers in
            workers.isDraining = true
            return workers.all
        }
        newWorkerContinuation.finish()
        for worker in all { worker.drain() }
    }

    /// A worker that ends without a request means that the bus is closed, so the stage ends too.
    private func workerEnded() {
        if !Task.isCancelled { drain() }
    }

    private func makeWorker(_ queue: WorkQueue) -> QueueWorker {
        var logger = logger
        logger[metadataKey: LogKey.queue] = "\(queue.name)"
        let policy = policy(queue)
        let acknowledger = MessageAcknowledger(
            bus: bus, backoff: policy.backoff, service: routing.service, metrics: metrics, census: census,
            isTracing: tracing != nil, logger: logger)
        return QueueWorker(
            runner: BatchRunner(
                queue: queue, policy: policy, handler: handler, bus: bus, acknowledger: acknowledger, routing: routing,
                metrics: metrics, tracing: tracing, logger: logger))
    }
}
