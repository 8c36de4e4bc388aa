internal import Synchronization

// Commands from callers, and timers.

extension ConsumerRole {
    mutating func processCommands(_ connection: inout Connection, now: ContinuousClock.Instant) throws(AMQPError) {
        handOverBursts()
        let commands = takeCommands(now: now)
        // Also when a call below throws: without a new subscription the consumer stays cancelled.
        defer { for (_, completion) in commands.cancelled { completion() } }
        try cancel(commands.cancelled.map(\.id), &connection)
        if shutdownState > .running, !isDraining {
            isDraining = true
            try cancel(Array(consumers.keys), &connection)
        }
        let isOver = isDraining && tracker.pending == 0 || shutdownState.isPastDeadline(now)
        for settlement in tracker.settlements(now: now, all: isOver) { try connection.send(settlement) }
        snapshot.oldestArrival.withLock { $0 = tracker.oldestArrival }
        let latencies = tracker.takeLatencies()
        if !latencies.isEmpty { acknowledged(latencies) }
        try subscribeDue(&connection, now: now)
    }

    mutating func processCommandsOffline(now: ContinuousClock.Instant) {
        for (id, completion) in takeCommands(now: now).cancelled {
            forget(id)?.end()
            completion()
        }
        if shutdownState > .running {
            for id in Array(consumers.keys) { forget(id)?.end() }
        }
    }

    /// Runs the commands that need no connection, and returns the others.
    private mutating func takeCommands(now: ContinuousClock.Instant) -> ConsumerCommandQueue.Commands {
        shutdownState = control.shutdownState
        let commands = commandQueue.take()
        var stale = 0
        for tag in commands.acknowledged where tag.generation != generation || !tracker.acknowledge(tag.value, now: now)
        {
            stale += 1
        }
        for tag in commands.requeued where tag.generation != generation || !tracker.requeue(tag.value) { stale += 1 }
        for tag in commands.rejected where tag.generation != generation || !tracker.reject(tag.value) { stale += 1 }
        if stale > 0 { snapshot.staleSettlements.add(stale, ordering: .relaxed) }
        for subscription in commands.subscribed {
            consumers[subscription.id] = QueueConsumer(subscription, backoff: backoff, nextTry: now)
        }
        if !commands.subscribed.isEmpty { updateSnapshot() }
        return commands
    }

    private mutating func cancel(_ ids: [UInt64], _ connection: inout Connection) throws(AMQPError) {
        let subscriptions = ids.compactMap { forget($0) }
        // First, so that no task waits for the broker's answer.
        for subscription in subscriptions {
            for delivery in subscription.end() {
                returnUndelivered(delivery.tag.value, to: subscription.consumerTag, now: .now)
            }
        }
        for subscription in subscriptions where byTag.removeValue(forKey: subscription.consumerTag) != nil {
            try connection.cancel(consumerTag: subscription.consumerTag)
        }
    }

    /// Requeues an undelivered message. RabbitMQ closes the connection on a requeue to a stream, so a stream's delivery
    /// is acknowledged.
    mutating func returnUndelivered(_ tag: UInt64, to consumerTag: String, now: ContinuousClock.Instant) {
        if consumerTag.hasPrefix(AMQPSubscription.streamTag) {
            _ = tracker.acknowledge(tag, now: now)
        } else {
            _ = tracker.requeue(tag)
        }
    }

    private mutating func forget(_ id: UInt64) -> AMQPSubscription? {
        guard let consumer = consumers.removeValue(forKey: id) else { return nil }
        updateSnapshot()
        return consumer.subscription
    }

    func updateSnapshot() { snapshot.update(consumers.values.map(\.subscription)) }

    private mutating func subscribeDue(_ connection: inout Connection, now: ContinuousClock.Instant) throws(AMQPError) {
        guard shutdownState == .running else { return }
        for (id, consumer) in consumers {
            guard let nextTry = consumer.nextTry, nextTry <= now else { continue }
            let subscription = consumer.subscription
            // A passive declare first: consuming a missing queue closes the channel, with all its consumers.
            guard try connection.queueStatus(subscription.queue) != nil else {
                retryLater(
                    consumer,
                    AMQPError(
                        .channelClosed(replyCode: 404), operation: "consume \(subscription.queue)",
                        detail: "the queue does not exist"),
                    now: now)
                continue
            }
            byTag[subscription.consumerTag] = consumer
            subscribing = id
            try connection.consume(
                subscription.queue, consumerTag: subscription.consumerTag, prefetch: subscription.prefetch,
                arguments: subscription.arguments())
            subscribing = nil
            consumer.nextTry = nil
            subscription.state = .active
        }
    }
}
