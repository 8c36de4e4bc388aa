internal import Logging

/// The consuming connection: keeps the subscriptions attached, delivers to them, and sends their settlements.
struct ConsumerRole: ConnectionRole {
    /// The thread's view of one subscription. A class, because every delivery looks it up.
    final class QueueConsumer {
        let subscription: AMQPSubscription
        var backoff: ReconnectBackoff
        /// When to attach; nil while attached.
        var nextTry: ContinuousClock.Instant?
        var burst: [AMQPDelivery] = []

        init(_ subscription: AMQPSubscription, backoff: ReconnectBackoff, nextTry: ContinuousClock.Instant) {
            self.subscription = subscription
            self.backoff = backoff
            self.nextTry = nextTry
        }
    }

    let commandQueue: ConsumerCommandQueue
    let control: ConnectionControl
    let snapshot: ConsumerSnapshot
    let logger: Logger
    /// The backoff of a new subscription.
    let backoff: ReconnectBackoff
    /// Reading pauses above this number of unsettled bytes.
    let maximumBytes: Int
    /// Receives the time from delivery to acknowledgement.
    let acknowledged: @Sendable ([Duration]) -> Void

    var consumers: [UInt64: QueueConsumer] = [:]
    var byTag: [String: QueueConsumer] = [:] { didSet { latest = nil } }
    /// The consumer of the last delivery, usually also of the next one.
    private var latest: (tag: String, consumer: QueueConsumer)?
    /// The consumers with deliveries in `burst`.
    private var bursting: [QueueConsumer] = []
    var generation: UInt64 = 0
    var tracker = AckTracker()
    private var assembler = FrameAssembler(maximumBody: AMQPConsumer.maximumBody)
    /// The consumer that is being attached: a channel close during `basic.consume` is about this one.
    var subscribing: UInt64?
    var isDraining = false
    /// Read before each look into the command queue, so that no settlement from before the shutdown is missed.
    var shutdownState = ConnectionControl.ShutdownState.running

    init(
        commandQueue: ConsumerCommandQueue, control: ConnectionControl, snapshot: ConsumerSnapshot, logger: Logger,
        backoff: ReconnectBackoff, maximumBytes: Int, acknowledged: @escaping @Sendable ([Duration]) -> Void
    ) {
        self.commandQueue = commandQueue
        self.control = control
        self.snapshot = snapshot
        self.logger = logger
        self.backoff = backoff
        self.maximumBytes = maximumBytes
        self.acknowledged = acknowledged
    }

    // MARK: - Connection

    mutating func connectionOpened(_ connection: inout Connection, now: ContinuousClock.Instant) throws(AMQPError) {
        generation += 1
    }

    mutating func connectionLost(_ error: AMQPError, close: Frame.Close?, now: ContinuousClock.Instant)
        -> ReconnectDelay
    {
        tracker = AckTracker()
        assembler = FrameAssembler(maximumBody: AMQPConsumer.maximumBody)
        bursting.removeAll()
        byTag.removeAll()
        let culprit = subscribing
        subscribing = nil
        for (id, consumer) in consumers {
            _ = consumer.subscription.buffer.removeAll()
            consumer.burst = []
            if id == culprit {
                retryLater(consumer, error, now: now)
            } else if consumer.nextTry == nil {
                consumer.nextTry = now
                consumer.subscription.state = .waiting(since: now, lastError: error)
            }
        }
        if case .channelClosed = error.code, culprit != nil { return .immediately }
        return .afterBackoff
    }

    /// Schedules the next attempt to attach.
    func retryLater(_ consumer: QueueConsumer, _ error: AMQPError, now: ContinuousClock.Instant) {
        let pause = consumer.backoff.next()
        consumer.nextTry = now + pause
        switch consumer.subscription.state {
        case .waiting(let since, _): consumer.subscription.state = .waiting(since: since, lastError: error)
        case .active, .cancelled: consumer.subscription.state = .waiting(since: now, lastError: error)
        }
        logger.warning(
            "Cannot consume a queue; retrying after a pause",
            metadata: ["queue": "\(consumer.subscription.queue)", "error": "\(error)", "next": "\(pause)"])
    }

    mutating func setBlocked(_ isBlocked: Bool) {}

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
                "Message exceeds the size limit; body dropped",
                metadata: [
                    "bytes": "\(bodySize)", "limit": "\(AMQPConsumer.maximumBody)",
                    "message_id": "\(properties.messageID ?? "-")",
                    "correlation": "\(properties.correlationID ?? "-")",
                ])
            try delivered(method, properties, [], omitted: Int(clamping: bodySize), now)
        case .returned: return
        }
    }

    private mutating func delivered(
        _ method: Frame.Deliver, _ properties: AMQPProperties, _ body: [UInt8], omitted: Int,
        _ now: ContinuousClock.Instant
    ) throws(AMQPError) {
        try tracker.delivered(method.deliveryTag, bytes: body.count + properties.receivedBytes, now: now)
        guard let consumer = consumer(method.consumerTag) else {
            // Delivered while its consumer was being cancelled.
            returnUndelivered(method.deliveryTag, to: method.consumerTag, now: now)
            return
        }
        if consumer.burst.isEmpty { bursting.append(consumer) }
        consumer.burst.append(
            AMQPDelivery(
                queue: consumer.subscription.queue,
                tag: AMQPDeliveryTag(generation: generation, value: method.deliveryTag),
                redelivered: method.redelivered, exchange: method.exchange, routingKey: method.routingKey,
                properties: properties, body: body, omittedBytes: omitted))
    }

    private mutating func consumer(_ tag: String) -> QueueConsumer? {
        if let latest, latest.tag == tag { return latest.consumer }
        guard let consumer = byTag[tag] else { return nil }
        latest = (tag, consumer)
        return consumer
    }

    private mutating func cancelledByBroker(_ tag: String, now: ContinuousClock.Instant) {
        guard let consumer = byTag.removeValue(forKey: tag) else { return }
        retryLater(
            consumer,
            AMQPError(
                .channelClosed(replyCode: 404), operation: "consume \(consumer.subscription.queue)",
                detail: "the broker cancelled the consumer; its queue was deleted or moved"),
            now: now)
    }

    mutating func handOverBursts() {
        for consumer in bursting where !consumer.burst.isEmpty {
            let burst = consumer.burst
            consumer.burst = []
            consumer.backoff.reset()
            consumer.subscription.buffer.add(burst)
        }
        bursting.removeAll(keepingCapacity: true)
    }

    // MARK: - Timing

    /// From this number of unsettled deliveries on, socket reads are batched. Each small read would wake this thread
    /// and a consuming task.
    private static var batchReadThreshold: Int { 64 }

    var canBatchReads: Bool { tracker.pending >= Self.batchReadThreshold }

    var isReadingPaused: Bool { tracker.pendingBytes > maximumBytes }

    var deadline: ContinuousClock.Instant? {
        var earliest = tracker.deadline
        for consumer in consumers.values {
            guard let nextTry = consumer.nextTry else { continue }
            earliest = min(earliest ?? nextTry, nextTry)
        }
        if case .graceful(let until) = shutdownState { earliest = min(earliest ?? until, until) }
        return earliest
    }

    func isFinished(now: ContinuousClock.Instant) -> Bool {
        switch shutdownState {
        case .running: false
        case .graceful(let until): consumers.isEmpty && tracker.pending == 0 || now >= until
        case .now: true
        }
    }

    mutating func finish() {
        let commands = commandQueue.close()
        for subscription in commands.subscribed { subscription.end() }
        for consumer in consumers.values { consumer.subscription.end() }
        consumers.removeAll()
        updateSnapshot()
        for (_, completion) in commands.cancelled { completion() }
    }
}
