internal import Logging
internal import Synchronization

/// The in connection: keeps the subscriptions consuming, hands their deliveries out, and settles what comes back.
struct ConsumerRole: ConnectionRole {
    /// One subscription as this thread sees it.
    private struct Consumption {
        let subscription: AMQPSubscription
        var backoff: Backoff
        /// When to (re)subscribe; nil while the broker has our consumer.
        var nextTry: ContinuousClock.Instant?
        var burst: [AMQPDelivery] = []
    }

    let inbox: ConsumerInbox
    let link: Link
    let shelf: ConsumerShelf
    let logger: Logger
    let backoff: BackoffPolicy

    private var consumptions: [UInt64: Consumption] = [:]
    private var byTag: [String: UInt64] = [:]
    /// Those with something in their burst.
    private var bursting: [UInt64] = []
    private var generation: UInt64 = 0
    private var tracker = AckTracker()
    private var assembler = FrameAssembler()
    /// A consume the broker answers by closing the channel was this one's.
    private var subscribing: UInt64?
    private var isDraining = false
    /// As it was *before* the inbox was last looked into: no settlement given before the end is overlooked.
    private var ending = Link.Ending.running

    init(inbox: ConsumerInbox, link: Link, shelf: ConsumerShelf, logger: Logger, backoff: BackoffPolicy) {
        self.inbox = inbox
        self.link = link
        self.shelf = shelf
        self.logger = logger
        self.backoff = backoff
    }

    // MARK: - The connection's life

    mutating func opened(_ connection: inout Connection, now: ContinuousClock.Instant) throws(AMQPError) {
        generation += 1
    }

    mutating func lost(_ error: AMQPError, close: Frame.Close?, now: ContinuousClock.Instant) -> Recovery {
        tracker = AckTracker()
        assembler = FrameAssembler()
        bursting.removeAll()
        byTag.removeAll()
        let culprit = subscribing
        subscribing = nil
        for id in Array(consumptions.keys) {
            _ = consumptions[id]?.subscription.buffer.removeAll()
            consumptions[id]?.burst = []
            if id == culprit {
                hold(id, error, now: now)
            } else if consumptions[id]?.nextTry == nil {
                consumptions[id]?.nextTry = now
                consumptions[id]?.subscription.state = .waiting(since: now, lastError: error)
            }
        }
        if case .channelClosed = error.code, culprit != nil { return .atOnce }
        return .backedOff
    }

    /// Puts a subscription off for a while.
    private mutating func hold(_ id: UInt64, _ error: AMQPError, now: ContinuousClock.Instant) {
        guard var consumption = consumptions[id] else { return }
        let pause = consumption.backoff.next()
        consumption.nextTry = now + pause
        switch consumption.subscription.state {
        case .waiting(let since, _): consumption.subscription.state = .waiting(since: since, lastError: error)
        case .active, .cancelled: consumption.subscription.state = .waiting(since: now, lastError: error)
        }
        consumptions[id] = consumption
        logger.warning(
            "a queue cannot be consumed for now",
            metadata: ["queue": "\(consumption.subscription.queue)", "error": "\(error)", "next": "\(pause)"])
    }

    mutating func blocked(_ isBlocked: Bool) {}

    // MARK: - Deliveries

    mutating func receive(_ frame: Frame, now: ContinuousClock.Instant) throws(AMQPError) {
        switch frame {
        case .deliver(let deliver): try assembler.begin(deliver)
        case .header(let size, let properties):
            if let content = try assembler.header(bodySize: size, properties) { try delivered(content) }
        case .body(let part): if let content = try assembler.body(part) { try delivered(content) }
        case .cancel(let tag): cancelledByBroker(tag, now: now)
        case .returned, .ack, .nack, .channelClose, .connectionClose, .blocked, .unblocked, .flow, .heartbeat, .other:
            return
        }
    }

    private mutating func delivered(_ content: FrameAssembler.Content) throws(AMQPError) {
        guard case .delivery(let method, let properties, let body) = content else { return }
        try tracker.delivered(method.deliveryTag)
        guard let id = byTag[method.consumerTag], let subscription = consumptions[id]?.subscription else {
            // Was on its way while its consumer was being cancelled.
            _ = tracker.requeue(method.deliveryTag)
            return
        }
        if consumptions[id]?.burst.isEmpty == true { bursting.append(id) }
        consumptions[id]?.burst.append(
            AMQPDelivery(
                queue: subscription.queue,
                tag: AMQPDeliveryTag(generation: generation, value: method.deliveryTag),
                redelivered: method.redelivered, exchange: method.exchange, routingKey: method.routingKey,
                properties: properties, body: body))
    }

    private mutating func cancelledByBroker(_ tag: String, now: ContinuousClock.Instant) {
        guard let id = byTag.removeValue(forKey: tag) else { return }
        hold(
            id,
            AMQPError(
                .channelClosed(replyCode: 404), operation: "consume \(consumptions[id]?.subscription.queue ?? "")",
                detail: "the broker cancelled the consumer; its queue was deleted or moved"),
            now: now)
    }

    private mutating func handOut() {
        for id in bursting {
            guard let burst = consumptions[id]?.burst, !burst.isEmpty else { continue }
            consumptions[id]?.burst = []
            consumptions[id]?.backoff.reset()
            consumptions[id]?.subscription.buffer.add(burst)
        }
        bursting.removeAll(keepingCapacity: true)
    }

    // MARK: - Orders

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
        if stale > 0 { shelf.staleSettlements.add(stale, ordering: .relaxed) }
        for subscription in orders.subscribed {
            consumptions[subscription.id] = Consumption(
                subscription: subscription, backoff: Backoff(backoff), nextTry: now)
        }
        if !orders.subscribed.isEmpty { showSubscriptions() }
        return orders
    }

    private mutating func cancel(_ ids: [UInt64], _ connection: inout Connection) throws(AMQPError) {
        let subscriptions = ids.compactMap { forget($0) }
        // The streams end first: nobody is to wait for the broker's answer.
        for subscription in subscriptions {
            for delivery in subscription.end() { _ = tracker.requeue(delivery.tag.value) }
        }
        for subscription in subscriptions where byTag.removeValue(forKey: subscription.consumerTag) != nil {
            try connection.cancel(consumerTag: subscription.consumerTag)
        }
    }

    private mutating func forget(_ id: UInt64) -> AMQPSubscription? {
        guard let consumption = consumptions.removeValue(forKey: id) else { return nil }
        showSubscriptions()
        return consumption.subscription
    }

    private func showSubscriptions() { shelf.show(consumptions.values.map(\.subscription)) }

    private mutating func subscribeDue(_ connection: inout Connection, now: ContinuousClock.Instant) throws(AMQPError) {
        guard ending == .running else { return }
        for (id, consumption) in consumptions {
            guard let nextTry = consumption.nextTry, nextTry <= now else { continue }
            let subscription = consumption.subscription
            // Asked first: a missing queue would close the channel, and with it everyone else's consumers.
            guard try connection.queueStatus(subscription.queue) != nil else {
                hold(
                    id,
                    AMQPError(
                        .channelClosed(replyCode: 404), operation: "consume \(subscription.queue)",
                        detail: "there is no such queue"),
                    now: now)
                continue
            }
            byTag[subscription.consumerTag] = id
            subscribing = id
            try connection.consume(
                subscription.queue, consumerTag: subscription.consumerTag, prefetch: subscription.prefetch)
            subscribing = nil
            consumptions[id]?.nextTry = nil
            subscription.state = .active
        }
    }

    // MARK: - When

    var deadline: ContinuousClock.Instant? {
        var earliest = tracker.deadline
        for consumption in consumptions.values {
            guard let nextTry = consumption.nextTry else { continue }
            earliest = min(earliest ?? nextTry, nextTry)
        }
        if case .graceful(let until) = ending { earliest = min(earliest ?? until, until) }
        return earliest
    }

    func isFinished(now: ContinuousClock.Instant) -> Bool {
        switch ending {
        case .running: false
        case .graceful(let until): consumptions.isEmpty && tracker.pending == 0 || now >= until
        case .now: true
        }
    }

    mutating func finish() {
        let orders = inbox.close()
        for subscription in orders.subscribed { subscription.end() }
        for consumption in consumptions.values { consumption.subscription.end() }
        consumptions.removeAll()
        showSubscriptions()
        for (_, completion) in orders.cancelled { completion() }
    }
}
