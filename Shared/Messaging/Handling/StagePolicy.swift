package import Primitives

/// Limits and timing of one queue's consumer. Queues do not share these limits, so a slow queue does not affect
/// another.
package struct StagePolicy: Sendable {
    package var batchSize: Int
    /// The most header and body bytes per batch; a larger message is a batch of its own. No message of a batch is
    /// settled before the whole batch is handled.
    package var batchBytes: Int
    /// The most weight per call of the handler (``StageHandler/weight(of:)``); a heavier message is handled alone.
    package var batchWeight: Int
    /// How long the first message of a batch waits for more, while ``eagerBatches`` batches are running.
    package var batchLinger: Duration
    /// The most unsettled deliveries of the queue's consumer, and the bound of duplicates after a crash. (Plus one
    /// while the prefetch is raised after the start.)
    package var prefetch: UInt16
    package var concurrentBatches: Int
    /// While fewer batches are running, a batch starts without waiting for more messages. With 0, every partial batch
    /// waits for ``batchLinger``.
    package var eagerBatches: Int
    /// The number of attempts after which a retry becomes a dead letter.
    package var maximumAttempts: Int
    /// How often an unroutable outbound is published before its message moves to a retry level and is handled again. An
    /// app without topology then does not block other apps. `nil` for handlers that must not run again: the message
    /// waits in place.
    package var unroutableRounds: Int?
    /// The time limit for running batches after a shutdown request.
    package var drainDeadline: Duration
    /// How long a delivery may wait before its handling starts, such as during an outage. It is requeued afterwards,
    /// because RabbitMQ's `consumer_timeout` closes the channel after 30 minutes (RabbitMQ: Delivery Acknowledgement
    /// Timeout).
    package var holdLimit: Duration
    /// The pause between attempts during an outage, and between publishes that the broker did not accept.
    package var backoff: Backoff
    /// The executor for the queue's tasks; `nil` for Swift's default executor.
    package var executor: (any TaskExecutor)?

    package init(
        batchSize: Int = 100, batchBytes: Int = .max, batchWeight: Int = .max, batchLinger: Duration = .milliseconds(5),
        prefetch: UInt16 = 300, concurrentBatches: Int = 4, eagerBatches: Int = 1, maximumAttempts: Int = 8,
        unroutableRounds: Int? = 3, drainDeadline: Duration = .seconds(20), holdLimit: Duration = .seconds(1200),
        backoff: Backoff = Backoff(base: .milliseconds(200), cap: .seconds(5)), executor: (any TaskExecutor)? = nil
    ) {
        precondition(batchSize > 0 && prefetch > 0 && concurrentBatches > 0, "a stage takes at least one message")
        self.batchSize = batchSize
        self.batchBytes = batchBytes
        self.batchWeight = batchWeight
        self.batchLinger = batchLinger
        self.prefetch = prefetch
        self.concurrentBatches = concurrentBatches
        self.eagerBatches = eagerBatches
        self.maximumAttempts = maximumAttempts
        self.unroutableRounds = unroutableRounds
        self.drainDeadline = drainDeadline
        self.holdLimit = holdLimit
        self.backoff = backoff
        self.executor = executor
    }
}

extension StagePolicy {
    /// The policy of a queue for one of several apps. All batches of an app together use fewer connections than the
    /// pool has, so that slow batches of one app leave connections for others.
    ///
    /// - Parameters:
    ///   - connections: The size of the database pool of this process.
    ///   - queues: The number of queues per app in this process.
    package static func perApp(connections: Int, queues: Int = 1) -> StagePolicy {
        StagePolicy(concurrentBatches: max(1, min(4, (connections - 1) / queues)))
    }
}
