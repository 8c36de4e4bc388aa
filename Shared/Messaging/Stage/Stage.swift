package import Logging
package import PushProtocol
internal import ServiceLifecycle
internal import Synchronization

/// One stage of the flow: consumes its queues, calls its handler, publishes, settles.
///
/// What the handler wants published is confirmed by the broker before the input is settled, so a crash at any point
/// costs a repetition and never a message. Each queue has its own batches and its own limits.
///
/// On graceful shutdown it stops its intake, gives back what is not begun, finishes what is, and returns. In a
/// `ServiceGroup` it stands after the bus it uses, so that it is drained first.
package final class Stage: Service, Sendable {
    private struct Workers {
        var all: [QueueWorker] = []
        var isDraining = false
    }

    private let policy: @Sendable (WorkQueue) -> StagePolicy
    private let bus: any MessageBus
    private let handler: AnyStageHandler
    private let redirection: Redirection
    private let metrics: StageMetrics
    private let logger: Logger
    private let workers = Mutex(Workers())
    private let arrivals: AsyncStream<QueueWorker>
    private let announce: AsyncStream<QueueWorker>.Continuation

    /// - Parameter service: the stage's name, such as `token-registry`: a metric label, the `app_id` of what it
    ///   publishes, and the name on its dead letters.
    package convenience init(
        service: String, queues: [WorkQueue], policy: StagePolicy = .init(), bus: any MessageBus,
        handler: some StageHandler,
        logger: Logger
    ) {
        self.init(service: service, queues: queues, policy: { _ in policy }, bus: bus, handler: handler, logger: logger)
    }

    /// As above, with a policy of its own for each queue.
    package init(
        service: String, queues: [WorkQueue], policy: @escaping @Sendable (WorkQueue) -> StagePolicy,
        bus: any MessageBus, handler: some StageHandler, logger: Logger
    ) {
        self.policy = policy
        self.bus = bus
        self.handler = AnyStageHandler(handler)
        redirection = Redirection(service: service)
        metrics = StageMetrics(stage: service)
        var logger = logger
        logger[metadataKey: LogKey.stage] = "\(service)"
        self.logger = logger
        (arrivals, announce) = AsyncStream.makeStream()
        for queue in queues { consume(queue) }
    }

    /// Runs until graceful shutdown, or until the bus closes. Cancellation ends it without settling: the broker delivers
    /// again.
    package func run() async throws {
        await withGracefulShutdownHandler {
            await withDiscardingTaskGroup { group in
                for await worker in arrivals {
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

    /// Takes up another queue, such as that of an app that was configured just now. A queue that is already consumed is
    /// left as it is.
    package func consume(_ queue: WorkQueue) {
        let new = workers.withLock { workers -> QueueWorker? in
            guard !workers.isDraining, !workers.all.contains(where: { $0.queue == queue }) else { return nil }
            let worker = makeWorker(queue)
            workers.all.append(worker)
            return worker
        }
        if let new { announce.yield(new) }
    }

    /// Cancels the consumer of `queue` and gives back what is not begun; what is in flight is finished. Returns when the
    /// broker lends no more. Nobody else's queue is touched.
    package func pause(_ queue: WorkQueue) async { await worker(of: queue)?.pause() }

    /// Consumes `queue` again.
    package func resume(_ queue: WorkQueue) async { worker(of: queue)?.resume() }

    /// Where each queue stands.
    package var status: [QueueStatus] {
        workers.withLock(\.all).map { QueueStatus(queue: $0.queue, condition: $0.condition) }
    }

    private func worker(of queue: WorkQueue) -> QueueWorker? {
        workers.withLock(\.all).first { $0.queue == queue }
    }

    private func drain() {
        let all = workers.withLock { workers in
            workers.isDraining = true
            return workers.all
        }
        announce.finish()
        for worker in all { worker.drain() }
    }

    /// A worker that ended unasked means that the bus is gone: the stage ends with it, and says so by returning.
    private func workerEnded() {
        if !Task.isCancelled { drain() }
    }

    private func makeWorker(_ queue: WorkQueue) -> QueueWorker {
        var logger = logger
        logger[metadataKey: LogKey.queue] = "\(queue.name)"
        let policy = policy(queue)
        let settler = Settler(
            bus: bus, backoff: policy.backoff, service: redirection.service, metrics: metrics, logger: logger)
        return QueueWorker(
            runner: BatchRunner(
                queue: queue, policy: policy, handler: handler, bus: bus, settler: settler, redirection: redirection,
                metrics: metrics, logger: logger))
    }
}
