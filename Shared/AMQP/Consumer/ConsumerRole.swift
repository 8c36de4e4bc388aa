internal import Logging

/// The in connection: keeps the subscriptions consuming, hands their deliveries out, and settles what comes back.
struct ConsumerRole: ConnectionRole {
    /// One subscription as this thread sees it. A class, since each delivery looks for it.
    final class Consumption {
        let subscription: AMQPSubscription
        var backoff: Backoff
        /// When to (re)subscribe; nil while the broker has our consumer.
        var nextTry: ContinuousClock.Instant?
        var burst: [AMQPDelivery] = []

        init(_ subscription: AMQPSubscription, backoff: Backoff, nextTry: ContinuousClock.Instant) {
            self.subscription = subscription
            self.backoff = backoff
            self.nextTry = nextTry
        }
    }

    let inbox: ConsumerInbox
    let link: Link
    let shelf: ConsumerShelf
    let logger: Logger
    let backoff: BackoffPolicy
    /// While more bytes than this are unsettled, next to nothing is read.
    let maximumBytes: Int
    /// Told how long each acknowledged delivery took.
    let acknowledged: @Sendable ([Duration]) -> Void

    var consumptions: [UInt64: Consumption] = [:]
    /// Those that the broker delivers to, by consumer tag.
    var byTag: [String: Consumption] = [:] { didSet { latest = nil } }
    /// The one that was delivered to last: mostly the next one too.
    private var latest: (tag: String, consumption: Consumption)?
    /// Those with something in their burst.
    private var bursting: [Consumption] = []
    var generation: UInt64 = 0
    var tracker = AckTracker()
    private var assembler = FrameAssembler(maximumBody: AMQPConsumer.maximumBody)
    /// A consume the broker answers by closing the channel was this one's.
    var subscribing: UInt64?
    var isDraining = false
    /// As it was *before* the inbox was last looked into: no settlement given before the end is overlooked.
    var ending = Link.Ending.running

    init(
        inbox: ConsumerInbox, link: Link, shelf: ConsumerShelf, logger: Logger, backoff: BackoffPolicy,
        maximumBytes: Int, acknowledged: @escaping @Sendable ([Duration]) -> Void
    ) {
        self.inbox = inbox
        self.link = link
        self.shelf = shelf
        self.logger = logger
        self.backoff = backoff
        self.maximumBytes = maximumBytes
        self.acknowledged = acknowledged
    }

    // MARK: - The connection's life

    mutating func opened(_ connection: inout Connection, now: ContinuousClock.Instant) throws(AMQPError) {
        generation += 1
    }

    mutating func lost(_ error: AMQPError, close: Frame.Close?, now: ContinuousClock.Instant) -> Recovery {
        tracker = AckTracker()
        assembler = FrameAssembler(maximumBody: AMQPConsumer.maximumBody)
        bursting.removeAll()
        byTag.removeAll()
        let culprit = subscribing
        subscribing = nil
        for (id, consumption) in consumptions {
            _ = consumption.subscription.buffer.removeAll()
            consumption.burst = []
            if id == culprit {
                hold(consumption, error, now: now)
            } else if consumption.nextTry == nil {
                consumption.nextTry = now
                consumption.subscription.state = .waiting(since: now, lastError: error)
            }
        }
        if case .channelClosed = error.code, culprit != nil { return .atOnce }
        return .backedOff
    }

    /// Puts a subscription off for a while.
    func hold(_ consumption: Consumption, _ error: AMQPError, now: ContinuousClock.Instant) {
        let pause = consumption.backoff.next()
        consumption.nextTry = now + pause
        switch consumption.subscription.state {
        case .waiting(let since, _): consumption.subscription.state = .waiting(since: since, lastError: error)
        case .active, .cancelled: consumption.subscription.state = .waiting(since: now, lastError: error)
        }
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
            if let content = try assembler.header(bodySize: size, properties) { try delivered(content, now) }
        case .body(let part): if let content = try assembler.body(part) { try delivered(content, now) }
        case .cancel(let tag): cancelledByBroker(tag, now: now)
        case .returned, .ack, .nack, .channelClose, .connectionClose, .blocked, .unblocked, .flow, .heartbeat, .other:
            return
        }
    }

    private mutating func delivered(
        _ content: FrameAssembler.Content, _ now: ContinuousClock.Instant
    ) throws(AMQPError) {
        switch content {
        case .delivery(let method, let properties, let body): try delivered(method, properties, body, omitted: 0, now)
        case .oversized(let method, let properties, let bodySize):
            logger.warning(
                "A message is longer than allowed; its body was dropped",
                metadata: ["bytes": "\(bodySize)", "limit": "\(AMQPConsumer.maximumBody)"])
            try delivered(method, properties, [], omitted: Int(clamping: bodySize), now)
        case .returned: return
        }
    }

    private mutating func delivered(
        _ method: Frame.Deliver, _ properties: AMQPProperties, _ body: [UInt8], omitted: Int,
        _ now: ContinuousClock.Instant
    ) throws(AMQPError) {
        try tracker.delivered(method.deliveryTag, bytes: body.count + properties.receivedBytes, now: now)
        guard let consumption = consumption(method.consumerTag) else {
            // Was on its way while its consumer was being cancelled.
            giveBack(method.deliveryTag, to: method.consumerTag, now: now)
            return
        }
        if consumption.burst.isEmpty { bursting.append(consumption) }
        consumption.burst.append(
            AMQPDelivery(
                queue: consumption.subscription.queue,
                tag: AMQPDeliveryTag(generation: generation, value: method.deliveryTag),
                redelivered: method.redelivered, exchange: method.exchange, routingKey: method.routingKey,
                properties: properties, body: body, omittedBytes: omitted))
    }

    private mutating func consumption(_ tag: String) -> Consumption? {
        if let latest, latest.tag == tag { return latest.consumption }
        guard let consumption = byTag[tag] else { return nil }
        latest = (tag, consumption)
        return consumption
    }

    private mutating func cancelledByBroker(_ tag: String, now: ContinuousClock.Instant) {
        guard let consumption = byTag.removeValue(forKey: tag) else { return }
        hold(
            consumption,
            AMQPError(
                .channelClosed(replyCode: 404), operation: "consume \(consumption.subscription.queue)",
                detail: "the broker cancelled the consumer; its queue was deleted or moved"),
            now: now)
    }

    mutating func handOut() {
        for consumption in bursting where !consumption.burst.isEmpty {
            let burst = consumption.burst
            consumption.burst = []
            consumption.backoff.reset()
            consumption.subscription.buffer.add(burst)
        }
        bursting.removeAll(keepingCapacity: true)
    }

    // MARK: - When

    /// With so many deliveries in hand the next ones can wait for each other: they are read together when something is
    /// settled, and no longer a few at a time, each of which woke this thread and their taker's.
    private static var enough: Int { 64 }

    var hasEnough: Bool { tracker.pending >= Self.enough }

    var isFull: Bool { tracker.pendingBytes > maximumBytes }

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
