/// How a stage takes its input. Each queue has all of this to itself: one that is slow or stuck takes nothing from
/// another.
package struct StagePolicy: Sendable {
    /// The most messages handed to the handler at once.
    package var batchSize: Int
    /// The most bytes that their bodies have together, unless one alone has more: messages that lead to much work are as
    /// long, and none of a batch is settled before all of it is done.
    package var batchBytes: Int
    /// The most that the messages of one call of the handler may weigh together (``StageHandler/weight(of:)``), unless one
    /// alone weighs more.
    package var batchWeight: Int
    /// How long the first message of a batch waits for company, while ``promptBatches`` run.
    package var batchAge: Duration
    /// The most unsettled messages the broker lends to one queue's consumer: what a crash hands out again. (One more just
    /// after the start, when the intake widens.)
    package var prefetch: UInt16
    package var concurrentBatches: Int
    /// While fewer batches than this run, nobody waits for company: what comes meanwhile is the next batch. 0 lets
    /// everybody wait.
    package var promptBatches: Int
    /// After so many attempts a message that would be retried is dead-lettered.
    package var maximumAttempts: Int
    /// How often a message's outbound may reach no queue before the message steps aside into a retry level, to be handled
    /// again: so that an app whose topology is missing holds up nobody else. `nil` where handling again would be felt
    /// outside: then it waits in place until there is a way.
    package var unroutableRounds: Int?
    /// How long batches in flight may take to finish once the process was asked to stop.
    package var drainDeadline: Duration
    /// How long a delivery may wait before its handling begins, such as during an outage. After that it goes back to
    /// the queue. RabbitMQ's `consumer_timeout` closes the channel after 30 minutes.
    package var holdLimit: Duration
    /// Between attempts to handle a batch during an outage, and to publish what the broker did not take.
    package var backoff: Backoff
    /// Where the queue's messages are taken in and handled; `nil` leaves it to Swift's own pool of threads.
    package var executor: (any TaskExecutor)?

    package init(
        batchSize: Int = 100, batchBytes: Int = .max, batchWeight: Int = .max, batchAge: Duration = .milliseconds(5),
        prefetch: UInt16 = 300, concurrentBatches: Int = 4, promptBatches: Int = 1, maximumAttempts: Int = 8,
        unroutableRounds: Int? = 3, drainDeadline: Duration = .seconds(20), holdLimit: Duration = .seconds(1200),
        backoff: Backoff = Backoff(), executor: (any TaskExecutor)? = nil
    ) {
        precondition(batchSize > 0 && prefetch > 0 && concurrentBatches > 0, "a stage takes at least one message")
        self.batchSize = batchSize
        self.batchBytes = batchBytes
        self.batchWeight = batchWeight
        self.batchAge = batchAge
        self.prefetch = prefetch
        self.concurrentBatches = concurrentBatches
        self.promptBatches = promptBatches
        self.maximumAttempts = maximumAttempts
        self.unroutableRounds = unroutableRounds
        self.drainDeadline = drainDeadline
        self.holdLimit = holdLimit
        self.backoff = backoff
        self.executor = executor
    }
}

extension StagePolicy {
    /// The policy of a queue that one app of several has to itself. The app's batches together take fewer connections than
    /// the database pool has, so that one app's slow batches leave some to the other apps.
    ///
    /// - Parameters:
    ///   - connections: the size of the process's database pool.
    ///   - queues: how many queues each app has in this process.
    package static func ofOneApp(connections: Int, queues: Int = 1) -> StagePolicy {
        StagePolicy(concurrentBatches: max(1, min(4, (connections - 1) / queues)))
    }
}
