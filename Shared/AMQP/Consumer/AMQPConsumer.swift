package import Logging
internal import ServiceLifecycle
internal import Synchronization

/// Consumes queues, on a connection and a thread of its own.
///
/// Back-pressure is prefetch: nothing is buffered beyond it. After a reconnect everything unsettled is delivered again
/// by the broker; settlements of the old deliveries are dropped, and what nobody had taken yet is too.
///
/// All methods may be called from any task, before ``run()`` too.
package final class AMQPConsumer: Service, Sendable {
    private let configuration: AMQPConfiguration
    private let logger: Logger
    private let link = Link()
    private let inbox: ConsumerInbox
    private let shelf = ConsumerShelf()
    private let acknowledged: @Sendable ([Duration]) -> Void

    /// - Parameter acknowledged: told, on the consumer's thread, how long each of some deliveries took from being read to
    ///   its acknowledgement being written.
    package init(
        configuration: AMQPConfiguration, logger: Logger,
        acknowledged: @escaping @Sendable ([Duration]) -> Void = { _ in }
    ) {
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
        let (inbox, link, shelf, acknowledged) = (inbox, link, shelf, acknowledged)
        try await Owner(configuration: configuration, name: "in", link: link, logger: logger).run { logger in
            ConsumerRole(
                inbox: inbox, link: link, shelf: shelf, logger: logger, backoff: self.configuration.backoff,
                acknowledged: acknowledged)
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
    /// - Parameter since: From which moment on, in seconds since 1970; asked at each attachment, on the consumer's thread.
    ///   The first deliveries may be from before it: streams are found by chunk.
    package func read(
        stream: String, prefetch: UInt16, since: @escaping @Sendable () -> Int64
    ) -> AMQPSubscription {
        precondition(prefetch > 0, "a stream is not read without a prefetch")
        return inbox.subscribe(stream, prefetch: prefetch, isStream: true) { ["x-stream-offset": .timestamp(since())] }
    }

    /// Tells the broker that these are done. Tags of a channel that is gone are dropped and counted.
    package func acknowledge(_ tags: [AMQPDeliveryTag]) { inbox.acknowledge(tags) }

    /// Gives these back to their queues, each by itself.
    package func requeue(_ tags: [AMQPDeliveryTag]) { inbox.requeue(tags) }
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
