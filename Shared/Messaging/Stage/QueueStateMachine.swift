internal import AMQP

/// Decides the actions of one queue's worker. Pure: events in, actions out. The worker executes them and owns the
/// timers.
///
/// Forms batches by count, bytes and linger time, and starts partial batches while few are running. Limits concurrent
/// batches, runs isolated messages alone, holds batches during an outage, and requeues waiting deliveries on pause and
/// drain, at the end of the consumer. ``ConsumerState`` covers the consumer.
struct QueueStateMachine: Sendable {
    enum Event: Sendable {
        case delivered([AMQPDelivery])
        /// The linger timer fired: the deliveries that waited when it was armed start now.
        case lingerElapsed
        /// The hold timer fired, after half of the policy's `holdLimit`.
        case holdTimePassed
        case finished(Batch.ID, BatchResult)
        case retryDue(Batch.ID)
        case subscriptionEnded
        case pause
        case resume
        case drain
    }

    enum Action: Sendable {
        case subscribe(prefetch: UInt16)
        case unsubscribe
        case armLingerTimer
        /// Deliveries wait or are held: send ``Event/holdTimePassed`` after half of the policy's `holdLimit`.
        case armHoldTimer
        case start(Batch)
        /// Send ``Event/retryDue(_:)`` after a backoff: the batch met an outage.
        case armRetryTimer(Batch.ID, afterFailures: Int)
        case requeue([AMQPDeliveryTag])
        /// The bus ended the subscription; no more deliveries arrive.
        case reportSubscriptionLost
    }

    private let policy: StagePolicy
    private var consumerState: ConsumerState
    private var isolation = PoisonMessageIsolation()
    private var waiting: [AMQPDelivery] = []
    /// Deliveries that are requeued at the end of a cancelled consumer. Before its end, the broker would deliver them to
    /// it again and count a return each time.
    private var leaving: [AMQPDelivery] = []
    /// The number of deliveries at the head of `waiting` whose linger time is over.
    private var lingerExpiredCount = 0
    private var lingerIsArmed = false
    private var holdIsArmed = false
    /// The deliveries that were waiting or held when the hold timer last fired.
    private var unsettledAtLastCheck: Set<AMQPDeliveryTag> = []
    /// The newest connection with a delivery.
    private var generation: UInt64 = 0
    private var running: [Batch.ID: Batch] = [:]
    private var held: [Batch.ID: Batch] = [:]
    private var nextID = 0
    private(set) var outage: String?

    init(policy: StagePolicy) {
        self.policy = policy
        consumerState = ConsumerState(prefetch: policy.prefetch)
    }

    var mode: ConsumerState.Mode { consumerState.mode }
    var isFinished: Bool { consumerState.isOver && running.isEmpty && held.isEmpty }
    /// Whether there is no consumer and none is being added or cancelled.
    var hasNoConsumer: Bool { !consumerState.isSubscribed }
    /// The messages being handled, published or held.
    private(set) var inFlight = 0

    mutating func start() -> [Action] { consumerState.open() }

    mutating func on(_ event: Event) -> [Action] {
        switch event {
        case .delivered(let deliveries): delivered(deliveries)
        case .lingerElapsed: lingerElapsed()
        case .holdTimePassed: holdTimePassed()
        case .finished(let id, let result): finished(id, result)
        case .retryDue(let id): release([id])
        case .subscriptionEnded: consumerState.ended() + requeueLeaving()
        case .pause: stop(consumerState.pause())
        case .resume: resume()
        case .drain: stop(consumerState.drain())
        }
    }

    private mutating func delivered(_ burst: [AMQPDelivery]) -> [Action] {
        let deliveries = ofThisConnection(burst)
        waiting += deliveries
        guard consumerState.mode == .running else { return stop([]) }
        let isTrusted = deliveries.contains { !isolation.mustIsolate($0) }
        return (isTrusted ? consumerState.raisePrefetch() : []) + schedule()
    }

    private mutating func lingerElapsed() -> [Action] {
        lingerIsArmed = false
        lingerExpiredCount = waiting.count
        return schedule()
    }

    private mutating func finished(_ id: Batch.ID, _ result: BatchResult) -> [Action] {
        guard let batch = running.removeValue(forKey: id) else { return [] }
        inFlight -= batch.deliveries.count
        switch result {
        case _ where batch.purpose == .movingToRetryLevel:
            return schedule()
        case .settled:
            if batch.isIsolated { isolation.noteSuccess() }
            outage = nil
            return release(held.keys.sorted()) + schedule()
        case .requeued:
            return schedule()
        case .held(var left, let what):
            left.deliveries.removeAll { $0.tag.generation < generation }
            guard consumerState.mode == .running else { return leave(left.deliveries) }
            guard !left.deliveries.isEmpty else {
                outage = what
                return schedule()
            }
            left.outages += 1
            held[id] = left
            inFlight += left.deliveries.count
            outage = what
            return [.armRetryTimer(id, afterFailures: left.outages)] + armHoldIfNeeded()
        }
    }

    /// Starts held batches again.
    private mutating func release(_ ids: [Batch.ID]) -> [Action] {
        ids.compactMap { id in
            guard let batch = held.removeValue(forKey: id) else { return nil }
            running[id] = batch
            return .start(batch)
        }
    }

    /// Requeues all deliveries that are not running. A pause keeps those that were already returned several times.
    private mutating func stop(_ actions: [Action]) -> [Action] {
        let isPause = consumerState.mode == .paused
        let stays = { (delivery: AMQPDelivery) in isPause && PoisonMessageIsolation.keepsWhilePaused(delivery) }
        let left = waiting.filter { !stays($0) } + held.sorted { $0.key < $1.key }.flatMap { $1.deliveries }
        waiting = waiting.filter(stays)
        lingerExpiredCount = 0
        inFlight -= held.values.reduce(0) { $0 + $1.deliveries.count }
        held = [:]
        outage = nil
        return actions + leave(left) + armHoldIfNeeded()
    }

    /// Handles deliveries whose consumer has not ended as if they had not been leaving.
    private mutating func resume() -> [Action] {
        let actions = consumerState.resume()
        waiting = leaving + waiting
        leaving = []
        return actions + schedule()
    }
}

// Deliveries that leave without being handled.
extension QueueStateMachine {
    /// Drops deliveries of lost connections, because the broker redelivers them. After any number of reconnects during
    /// an outage each message is held once.
    ///
    /// - Returns: The deliveries of `burst` that can still be settled.
    private mutating func ofThisConnection(_ burst: [AMQPDelivery]) -> [AMQPDelivery] {
        guard let newest = burst.last?.tag.generation, newest != generation else { return burst }
        generation = max(generation, newest)
        let isStale = { [generation] (delivery: AMQPDelivery) in delivery.tag.generation < generation }
        lingerExpiredCount -= waiting.prefix(lingerExpiredCount).count(where: isStale)
        waiting.removeAll(where: isStale)
        leaving.removeAll(where: isStale)
        for (id, batch) in held {
            let left = batch.deliveries.filter { !isStale($0) }
            inFlight -= batch.deliveries.count - left.count
            held[id]?.deliveries = left
            if left.isEmpty { held[id] = nil }
        }
        return burst.filter { !isStale($0) }
    }

    /// Requeues deliveries that no consumer of this stage may receive again.
    private mutating func leave(_ deliveries: [AMQPDelivery]) -> [Action] {
        guard consumerState.isCancelling else { return requeue(deliveries) }
        leaving += deliveries
        return []
    }

    private mutating func requeueLeaving() -> [Action] {
        defer { leaving = [] }
        return requeue(leaving)
    }

    /// Requeues deliveries. Moves those near the delivery limit to a retry level instead, because the broker counts
    /// returns.
    private mutating func requeue(_ deliveries: [AMQPDelivery]) -> [Action] {
        let nearLimit = deliveries.filter(PoisonMessageIsolation.isNearDeliveryLimit)
        let tags = deliveries.lazy.filter { !PoisonMessageIsolation.isNearDeliveryLimit($0) }.map(\.tag)
        return (tags.isEmpty ? [] : [.requeue(Array(tags))]) + moveToRetryLevel(nearLimit)
    }

    /// Starts a batch that moves deliveries to a retry level.
    private mutating func moveToRetryLevel(_ deliveries: [AMQPDelivery]) -> [Action] {
        guard !deliveries.isEmpty else { return [] }
        nextID += 1
        let batch = Batch(id: nextID, deliveries: deliveries, isIsolated: false, purpose: .movingToRetryLevel)
        running[batch.id] = batch
        inFlight += deliveries.count
        return [.start(batch)]
    }

    /// Requeues the deliveries that were already waiting at the last check. RabbitMQ closes the channel of a consumer
    /// that holds a delivery for 30 minutes, and then counts a return for each delivery of the channel.
    private mutating func holdTimePassed() -> [Action] {
        holdIsArmed = false
        let isOverdue = { [unsettledAtLastCheck] (delivery: AMQPDelivery) in unsettledAtLastCheck.contains(delivery.tag)
        }
        var overdue = waiting.filter(isOverdue)
        waiting.removeAll(where: isOverdue)
        lingerExpiredCount = min(lingerExpiredCount, waiting.count)
        for (id, batch) in held.sorted(by: { $0.key < $1.key }) where batch.deliveries.contains(where: isOverdue) {
            overdue += batch.deliveries
            inFlight -= batch.deliveries.count
            held[id] = nil
        }
        unsettledAtLastCheck = Set((waiting + held.values.flatMap(\.deliveries)).map(\.tag))
        // A pause keeps only deliveries that must not be returned again.
        let actions = consumerState.mode == .paused ? moveToRetryLevel(overdue) : requeue(overdue)
        return actions + (consumerState.mode == .running ? schedule() : armHoldIfNeeded())
    }

    private mutating func armHoldIfNeeded() -> [Action] {
        guard !holdIsArmed, !waiting.isEmpty || !held.isEmpty else { return [] }
        holdIsArmed = true
        return [.armHoldTimer]
    }
}

extension QueueStateMachine {
    /// Starts batches up to the limit. While a batch is held none starts, and the prefetch stops further deliveries.
    private mutating func schedule() -> [Action] {
        var actions: [Action] = []
        while consumerState.mode == .running, held.isEmpty, running.count < policy.concurrentBatches,
            !running.values.contains(where: \.isIsolated), let batch = nextBatch()
        {
            running[batch.id] = batch
            inFlight += batch.deliveries.count
            actions.append(.start(batch))
        }
        if !waiting.isEmpty, lingerExpiredCount == 0, !lingerIsArmed {
            lingerIsArmed = true
            actions.append(.armLingerTimer)
        }
        return actions + armHoldIfNeeded()
    }

    private mutating func nextBatch() -> Batch? {
        guard let first = waiting.first else { return nil }
        if isolation.mustIsolate(first) {
            return running.isEmpty ? take(1, isIsolated: true) : nil
        }
        let (count, isFull) = nextBatchSize
        let waits = !isFull && lingerExpiredCount == 0 && running.count >= policy.eagerBatches
        return waits ? nil : take(count, isIsolated: false)
    }

    /// The number of deliveries for the next batch, and whether it is full.
    private var nextBatchSize: (count: Int, isFull: Bool) {
        var count = 0
        var bytes = 0
        for delivery in waiting.prefix(policy.batchSize) {
            if isolation.mustIsolate(delivery) { return (count, false) }
            if delivery.failedAlone { return (max(count, 1), true) }
            bytes += delivery.body.count + delivery.properties.receivedBytes
            if count > 0, bytes > policy.batchBytes { return (count, true) }
            count += 1
        }
        return (count, count == policy.batchSize || bytes >= policy.batchBytes)
    }

    private mutating func take(_ count: Int, isIsolated: Bool) -> Batch {
        defer {
            waiting.removeFirst(count)
            lingerExpiredCount = max(0, lingerExpiredCount - count)
            nextID += 1
        }
        let deliveries = Array(waiting.prefix(count))
        if deliveries.contains(where: { !$0.redelivered }) { isolation.noteFirstDelivery() }
        return Batch(id: nextID, deliveries: deliveries, isIsolated: isIsolated)
    }
}

extension Batch {
    typealias ID = Int
}
