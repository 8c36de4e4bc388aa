package import Logging
internal import ServiceLifecycle
internal import Synchronization

/// Consumes queues on a connection and a thread of its own.
///
/// Prefetch and ``maximumUnsettledBytes`` limit the unsettled deliveries: above the byte limit reading almost stops, and
/// the broker keeps the other messages. A body longer than ``maximumBody`` is dropped while it is read. After
/// a reconnect the broker redelivers every unsettled message; buffered deliveries and settlements of the old connection
/// are dropped.
///
/// You can call every method from any task, also before ``run()``.
package final class AMQPConsumer: Service, Sendable {
    /// The longest body that is kept, in bytes: twice the limit of every stage.
    package static let maximumBody = 512 * 1024
    /// Reading pauses above this number of unsettled header and body bytes, per consumer. A quarter of a pod's memory
    /// limit.
    package static let maximumUnsettledBytes = 64 * 1024 * 1024

    private let maximumBytes: Int
    private let configuration: AMQPConfiguration
    private let logger: Logger
    private let control: ConnectionControl
    private let commandQueue: ConsumerCommandQueue
    private let snapshot = ConsumerSnapshot()
    private let acknowledged: @Sendable ([Duration]) -> Void

    /// - Parameters:
    ///   - maximumBytes: Reading pauses above this number of unsettled header and body bytes.
    ///   - acknowledged: Receives the times from the read of a delivery to the write of its acknowledgement. Called on
    ///     the consumer's thread.
    package convenience init(
        configuration: AMQPConfiguration, maximumBytes: Int = maximumUnsettledBytes, logger: Logger,
        acknowledged: @escaping @Sendable ([Duration]) -> Void = { _ in }
    ) {
        self.init(
            configuration: configuration, maximumBytes: maximumBytes, control: ConnectionControl(), logger: logger,
            acknowledged: acknowledged)
    }

    init(
        configuration: AMQPConfiguration, maximumBytes: Int = maximumUnsettledBytes, control: ConnectionControl,
        logger: Logger,
        acknowledged: @escaping @Sendable ([Duration]) -> Void = { _ in }
    ) {
        self.maximumBytes = maximumBytes
        self.control = control
        self.configuration = configuration
        self.logger = logger
        self.acknowledged = acknowledged
        commandQueue = ConsumerCommandQueue(wakeup: control.wakeup)
    }

    package var state: AMQPConnectionState { control.state }

    /// The subscribed queues that cannot deliver now, each with its error if there is one.
    package var waitingQueues: [String: AMQPError?] { snapshot.waitingQueues }

    /// The number of settlements dropped because their channel was closed. The broker redelivers these messages.
    package var staleSettlements: Int { snapshot.staleSettlements.load(ordering: .relaxed) }

    /// When the oldest unsettled delivery arrived; `nil` without one. After a lost connection the last value, until the
    /// next connection opens.
    package var oldestUnsettled: ContinuousClock.Instant? { snapshot.oldestArrival.withLock { $0 } }

    /// Keeps a connection and all subscriptions open until shutdown. Call it once.
    ///
    /// Graceful shutdown cancels all subscriptions, requeues the buffered deliveries, and waits up to `timeouts.drain`
    /// for the settlement of the others.
    package func run() async throws {
        let (commandQueue, control, snapshot, acknowledged, bytes) = (
            commandQueue, control, snapshot, acknowledged, maximumBytes
        )
        do {
            try await ConnectionThread(configuration: configuration, name: "in", control: control, logger: logger).run {
                logger in
                ConsumerRole(
                    commandQueue: commandQueue, control: control, snapshot: snapshot, logger: logger,
                    backoff: ReconnectBackoff(self.configuration), maximumBytes: bytes, acknowledged: acknowledged)
            }
        } catch {
            // No thread serves the subscriptions.
            let commands = commandQueue.close()
            for subscription in commands.subscribed { subscription.end() }
            for (_, completion) in commands.cancelled { completion() }
            throw error
        }
    }

    /// Consumes `queue`, also after reconnects, until cancelled. Waits for a queue that does not exist.
    ///
    /// - Parameter prefetch: The maximum number of unsettled deliveries, and of duplicates after a crash. Not 0.
    package func subscribe(queue: String, prefetch: UInt16) -> AMQPSubscription {
        precondition(prefetch > 0, "a prefetch of 0 means no limit")
        return commandQueue.subscribe(queue, prefetch: prefetch)
    }

    /// Reads a stream like ``subscribe(queue:prefetch:)`` consumes a queue. An acknowledgement gives credit for the
    /// next deliveries and removes nothing. A stream does not accept a requeue (Shared/Messaging/BrokerFacts.md §1.14).
    ///
    /// - Parameter start: The position to read from. Called on the consumer's thread, at each attachment.
    package func read(
        stream: String, prefetch: UInt16, from start: @escaping @Sendable () -> AMQPStreamStart
    ) -> AMQPSubscription {
        precondition(prefetch > 0, "a stream is not read without a prefetch")
        return commandQueue.subscribe(stream, prefetch: prefetch, isStream: true) {
            ["x-stream-offset": start().argument]
        }
    }

    /// Acknowledges deliveries. Drops and counts tags of a closed channel.
    package func acknowledge(_ tags: [AMQPDeliveryTag]) { commandQueue.acknowledge(tags) }

    /// Requeues deliveries, one `basic.nack` each.
    package func requeue(_ tags: [AMQPDeliveryTag]) { commandQueue.requeue(tags) }

    /// Rejects deliveries, so that the broker dead-letters them. Deliveries of a stream are acknowledged.
    package func reject(_ tags: [AMQPDeliveryTag]) { commandQueue.reject(tags) }
}

/// The state of the consumer's thread as other threads see it.
final class ConsumerSnapshot: Sendable {
    let staleSettlements = Atomic(0)
    let oldestArrival = Mutex<ContinuousClock.Instant?>(nil)
    private let subscriptions = Mutex<[AMQPSubscription]>([])

    func update(_ all: [AMQPSubscription]) { subscriptions.withLock { $0 = all } }

    var waitingQueues: [String: AMQPError?] {
        var waiting: [String: AMQPError?] = [:]
        for subscription in subscriptions.withLock({ $0 }) {
            if case .waiting(_, let error) = subscription.state { waiting[subscription.queue] = .some(error) }
        }
        return waiting
    }
}
