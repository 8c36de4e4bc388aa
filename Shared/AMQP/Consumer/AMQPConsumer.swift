package import Logging
internal import ServiceLifecycle
internal import Synchronization

/// Consumes queues, on a connection and a thread of its own.
///
/// Back-pressure is prefetch, and the bytes of unsettled headers and bodies: past ``maximumBytesInHand`` the socket is
/// hardly read, so that the broker keeps the rest. A body longer than ``maximumBody`` is dropped while it is read. After a
/// reconnect the broker redelivers every unsettled message. Deliveries still in the buffer, and settlements of old
/// deliveries, are dropped.
///
/// All methods may be called from any task, before ``run()`` too.
package final class AMQPConsumer: Service, Sendable {
    /// The longest body that is kept, in bytes: twice as long as any stage accepts.
    package static let maximumBody = 512 * 1024
    /// The bytes of unsettled headers and bodies from which on reading pauses, for one consumer. A quarter of a pod's memory limit.
    package static let maximumBytesInHand = 64 * 1024 * 1024

    private let maximumBytes: Int
    private let configuration: AMQPConfiguration
    private let logger: Logger
    private let link: Link
    private let inbox: ConsumerInbox
    private let shelf = ConsumerShelf()
    private let acknowledged: @Sendable ([Duration]) -> Void

    /// - Parameters:
    ///   - maximumBytes: The bytes of unsettled headers and bodies from which on reading pauses.
    ///   - acknowledged: gets the times between reading some deliveries and writing their acknowledgements. Called on the
    ///     consumer's thread.
    package convenience init(
        configuration: AMQPConfiguration, maximumBytes: Int = maximumBytesInHand, logger: Logger,
        acknowledged: @escaping @Sendable ([Duration]) -> Void = { _ in }
    ) {
        self.init(
            configuration: configuration, maximumBytes: maximumBytes, link: Link(), logger: logger,
            acknowledged: acknowledged)
    }

    init(
        configuration: AMQPConfiguration, maximumBytes: Int = maximumBytesInHand, link: Link, logger: Logger,
        acknowledged: @escaping @Sendable ([Duration]) -> Void = { _ in }
    ) {
        self.maximumBytes = maximumBytes
        self.link = link
        self.configuration = configuration
        self.logger = logger
        self.acknowledged = acknowledged
        inbox = ConsumerInbox(wakeup: link.wakeup)
    }

    package var state: AMQPConnectionState { link.state }

    /// The queues that are subscribed to and cannot deliver for now, with the reason when there is one.
    package var waitingQueues: [String: AMQPError?] { shelf.waitingQueues }

    /// Settlements that came too late: their channel was gone, and the broker delivers the messages again.
    package var staleSettlements: Int { shelf.staleSettlements.load(ordering: .relaxed) }

    /// Keeps a connection open, and every subscription on it, until shutdown.
    ///
    /// Graceful shutdown cancels all subscriptions, gives what was not taken back to the queues, and waits for what was
    /// taken to be settled, for at most the configuration's `timeouts.drain`. Runs once.
    package func run() async throws {
        let (inbox, link, shelf, acknowledged, bytes) = (inbox, link, shelf, acknowledged, maximumBytes)
        do {
            try await Owner(configuration: configuration, name: "in", link: link, logger: logger).run { logger in
                ConsumerRole(
                    inbox: inbox, link: link, shelf: shelf, logger: logger, backoff: self.configuration.backoff,
                    maximumBytes: bytes, acknowledged: acknowledged)
            }
        } catch {
            // No thread will serve the subscriptions.
            let orders = inbox.close()
            for subscription in orders.subscribed { subscription.end() }
            for (_, completion) in orders.cancelled { completion() }
            throw error
        }
    }

    /// Consumes `queue`, now and after every reconnect, until cancelled. A queue that does not exist is waited for.
    ///
    /// - Parameter prefetch: How many deliveries may be unsettled; also the bound of duplicates after a crash. Not 0.
    package func subscribe(queue: String, prefetch: UInt16) -> AMQPSubscription {
        precondition(prefetch > 0, "a prefetch of 0 means no limit")
        return inbox.subscribe(queue, prefetch: prefetch)
    }

    /// Reads a stream, as ``subscribe(queue:prefetch:)`` consumes a queue. Whatever is acknowledged, it stays in the
    /// stream: acknowledging lets the next deliveries come, and nothing can be given back.
    ///
    /// - Parameter start: Where reading begins; asked at each attachment, on the consumer's thread.
    package func read(
        stream: String, prefetch: UInt16, from start: @escaping @Sendable () -> AMQPStreamStart
    ) -> AMQPSubscription {
        precondition(prefetch > 0, "a stream is not read without a prefetch")
        return inbox.subscribe(stream, prefetch: prefetch, isStream: true) { ["x-stream-offset": start().argument] }
    }

    /// Tells the broker that these are done. Tags of a channel that is gone are dropped and counted.
    package func acknowledge(_ tags: [AMQPDeliveryTag]) { inbox.acknowledge(tags) }

    /// Gives these back to their queues, each by itself.
    package func requeue(_ tags: [AMQPDeliveryTag]) { inbox.requeue(tags) }

    /// Has the broker move these to the dead-letter exchange of their queue. A stream's are acknowledged.
    package func reject(_ tags: [AMQPDeliveryTag]) { inbox.reject(tags) }
}

/// What the consuming thread shows to the outside.
final class ConsumerShelf: Sendable {
    let staleSettlements = Atomic(0)
    private let subscriptions = Mutex<[AMQPSubscription]>([])

    func show(_ all: [AMQPSubscription]) { subscriptions.withLock { $0 = all } }

    var waitingQueues: [String: AMQPError?] {
        var waiting: [String: AMQPError?] = [:]
        for subscription in subscriptions.withLock({ $0 }) {
            if case .waiting(_, let error) = subscription.state { waiting[subscription.queue] = .some(error) }
        }
        return waiting
    }
}
