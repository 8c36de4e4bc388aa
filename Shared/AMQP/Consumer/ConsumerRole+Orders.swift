internal import Logging
internal import Synchronization

// What callers ask of the consuming thread, and what falls due.

extension ConsumerRole {
    mutating func work(_ connection: inout Connection, now: ContinuousClock.Instant) throws(AMQPError) {
        handOut()
        let orders = takeOrders(now: now)
        // Whatever becomes of the connection meanwhile: a consumer that is not asked for again is gone.
        defer { for (_, completion) in orders.cancelled { completion() } }
        try cancel(orders.cancelled.map(\.id), &connection)
        if ending > .running, !isDraining {
            isDraining = true
            try cancel(Array(consumptions.keys), &connection)
        }
        let isOver = isDraining && tracker.pending == 0 || ending.isOver(now)
        for settlement in tracker.settlements(now: now, all: isOver) { try connection.send(settlement) }
        let waits = tracker.takeWaits()
        if !waits.isEmpty { acknowledged(waits) }
        try subscribeDue(&connection, now: now)
    }

    mutating func workDisconnected(now: ContinuousClock.Instant) {
        for (id, completion) in takeOrders(now: now).cancelled {
            forget(id)?.end()
            completion()
        }
        if ending > .running {
            for id in Array(consumptions.keys) { forget(id)?.end() }
        }
    }

    /// Does what needs no connection, and gives back the rest.
    private mutating func takeOrders(now: ContinuousClock.Instant) -> ConsumerInbox.Orders {
        ending = link.ending
        let orders = inbox.take()
        var stale = 0
        for tag in orders.acknowledged where tag.generation != generation || !tracker.acknowledge(tag.value, now: now) {
            stale += 1
        }
        for tag in orders.requeued where tag.generation != generation || !tracker.requeue(tag.value) { stale += 1 }
        for tag in orders.rejected where tag.generation != generation || !tracker.reject(tag.value) { stale += 1 }
        if stale > 0 { shelf.staleSettlements.add(stale, ordering: .relaxed) }
        for subscription in orders.subscribed {
            consumptions[subscription.id] = Consumption(subscription, backoff: Backoff(backoff), nextTry: now)
        }
        if !orders.subscribed.isEmpty { showSubscriptions() }
        return orders
    }

    private mutating func cancel(_ ids: [UInt64], _ connection: inout Connection) throws(AMQPError) {
        let subscriptions = ids.compactMap { forget($0) }
        // The streams end first: nobody is to wait for the broker's answer.
        for subscription in subscriptions {
            for delivery in subscription.end() {
                giveBack(delivery.tag.value, to: subscription.consumerTag, now: .now)
            }
        }
        for subscription in subscriptions where byTag.removeValue(forKey: subscription.consumerTag) != nil {
            try connection.cancel(consumerTag: subscription.consumerTag)
        }
    }

    /// Leaves a delivery that nobody has taken. A stream keeps what it has, and a broker that is given something back to
    /// it closes the connection.
    mutating func giveBack(_ tag: UInt64, to consumerTag: String, now: ContinuousClock.Instant) {
        if consumerTag.hasPrefix(AMQPSubscription.streamTag) {
            _ = tracker.acknowledge(tag, now: now)
        } else {
            _ = tracker.requeue(tag)
        }
    }

    private mutating func forget(_ id: UInt64) -> AMQPSubscription? {
        guard let consumption = consumptions.removeValue(forKey: id) else { return nil }
        showSubscriptions()
        return consumption.subscription
    }

    func showSubscriptions() { shelf.show(consumptions.values.map(\.subscription)) }

    private mutating func subscribeDue(_ connection: inout Connection, now: ContinuousClock.Instant) throws(AMQPError) {
        guard ending == .running else { return }
        for (id, consumption) in consumptions {
            guard let nextTry = consumption.nextTry, nextTry <= now else { continue }
            let subscription = consumption.subscription
            // Asked first: a missing queue would close the channel, and with it everyone else's consumers.
            guard try connection.queueStatus(subscription.queue) != nil else {
                hold(
                    consumption,
                    AMQPError(
                        .channelClosed(replyCode: 404), operation: "consume \(subscription.queue)",
                        detail: "there is no such queue"),
                    now: now)
                continue
            }
            byTag[subscription.consumerTag] = consumption
            subscribing = id
            try connection.consume(
                subscription.queue, consumerTag: subscription.consumerTag, prefetch: subscription.prefetch,
                arguments: subscription.arguments())
            subscribing = nil
            consumption.nextTry = nil
            subscription.state = .active
        }
    }
}
