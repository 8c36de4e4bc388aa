internal import AMQP

/// What one queue's worker does next. Pure: events in, actions out; the worker carries them out and owns all time.
///
/// It forms batches by count, by weight and by age, or of what is there while little runs; runs no more than the policy
/// allows at once, runs suspects alone, holds work during an outage, and gives back what was not begun when paused or
/// drained. How the consumer comes and goes is in `Intake`.
struct QueueMachine: Sendable {
    enum Event: Sendable {
        case delivered([AMQPDelivery])
        /// What waited when the timer was armed has waited long enough.
        case aged
        /// Half of the policy's `holdLimit` has passed since the hold timer was armed.
        case holdTimePassed
        case finished(Work.ID, WorkResult)
        case retryDue(Work.ID)
        case subscriptionEnded
        case pause
        case resume
        case drain
    }

    enum Action: Sendable {
        case subscribe(prefetch: UInt16)
        case unsubscribe
        case armAge
        /// Deliveries wait or are held: report ``Event/holdTimePassed`` in half of the policy's `holdLimit`.
        case armHold
        case start(Work)
        /// Work that met an outage is due again after a back-off.
        case armRetry(Work.ID, afterFailures: Int)
        case giveBack([AMQPDeliveryTag])
        /// The bus ended the subscription unasked: nothing more will come.
        case reportLoss
    }

    private let policy: StagePolicy
    private var intake: Intake
    private var suspicion = Suspicion()
    private var waiting: [AMQPDelivery] = []
    /// How many at the head of `waiting` are of age.
    private var ripe = 0
    private var ageIsArmed = false
    private var holdIsArmed = false
    /// The deliveries that waited or were held when the hold timer last fired.
    private var inHandBefore: Set<AMQPDeliveryTag> = []
    /// The newest connection that delivered something.
    private var generation: UInt64 = 0
    private var running: [Work.ID: Work] = [:]
    private var held: [Work.ID: Work] = [:]
    private var nextID = 0
    private(set) var outage: String?

    init(policy: StagePolicy) {
        self.policy = policy
        intake = Intake(prefetch: policy.prefetch)
    }

    var mode: Intake.Mode { intake.mode }
    var isFinished: Bool { intake.isOver && running.isEmpty && held.isEmpty }
    /// No consumer, and none on its way in or out.
    var isQuiet: Bool { !intake.isSubscribed }
    /// Messages being handled, published or held.
    private(set) var inFlight = 0

    mutating func start() -> [Action] { intake.open() }

    mutating func on(_ event: Event) -> [Action] {
        switch event {
        case .delivered(let deliveries): delivered(deliveries)
        case .aged: aged()
        case .holdTimePassed: holdTimePassed()
        case .finished(let id, let result): finished(id, result)
        case .retryDue(let id): release([id])
        case .subscriptionEnded: intake.ended()
        case .pause: stop(intake.pause())
        case .resume: intake.resume() + schedule()
        case .drain: stop(intake.drain())
        }
    }

    private mutating func delivered(_ burst: [AMQPDelivery]) -> [Action] {
        let deliveries = ofThisConnection(burst)
        waiting += deliveries
        guard intake.mode == .running else { return stop([]) }
        let isTrusted = deliveries.contains { !suspicion.suspects($0) }
        return (isTrusted ? intake.widen() : []) + schedule()
    }

    private mutating func aged() -> [Action] {
        ageIsArmed = false
        ripe = waiting.count
        return schedule()
    }

    private mutating func finished(_ id: Work.ID, _ result: WorkResult) -> [Action] {
        guard let work = running.removeValue(forKey: id) else { return [] }
        inFlight -= work.deliveries.count
        switch result {
        case _ where work.purpose == .settingAside:
            return schedule()
        case .settled:
            if work.isSuspect { suspicion.survived() }
            outage = nil
            return release(held.keys.sorted()) + schedule()
        case .givenBack:
            return schedule()
        case .held(var left, let what):
            left.deliveries.removeAll { $0.tag.generation < generation }
            guard intake.mode == .running else { return giveBack(left.deliveries) }
            guard !left.deliveries.isEmpty else {
                outage = what
                return schedule()
            }
            left.outages += 1
            held[id] = left
            inFlight += left.deliveries.count
            outage = what
            return [.armRetry(id, afterFailures: left.outages)] + armHoldIfNeeded()
        }
    }

    /// Takes held work up again.
    private mutating func release(_ ids: [Work.ID]) -> [Action] {
        ids.compactMap { id in
            guard let work = held.removeValue(forKey: id) else { return nil }
            running[id] = work
            return .start(work)
        }
    }

    /// Gives back everything that is not running, for others to take; a pause keeps what has been given back often enough.
    private mutating func stop(_ actions: [Action]) -> [Action] {
        let isPause = intake.mode == .paused
        let stays = { (delivery: AMQPDelivery) in isPause && Suspicion.mustStay(delivery) }
        let left = waiting.filter { !stays($0) } + held.sorted { $0.key < $1.key }.flatMap { $1.deliveries }
        waiting = waiting.filter(stays)
        ripe = 0
        inFlight -= held.values.reduce(0) { $0 + $1.deliveries.count }
        held = [:]
        outage = nil
        return actions + giveBack(left) + armHoldIfNeeded()
    }
}

// Deliveries that leave without having been handled.
extension QueueMachine {
    /// Drops deliveries of lost connections: the broker delivers those messages again. Each message is then held once,
    /// after any number of reconnects during an outage.
    ///
    /// - Returns: the deliveries of `burst` that can still be settled.
    private mutating func ofThisConnection(_ burst: [AMQPDelivery]) -> [AMQPDelivery] {
        guard let newest = burst.last?.tag.generation, newest != generation else { return burst }
        generation = max(generation, newest)
        let isStale = { [generation] (delivery: AMQPDelivery) in delivery.tag.generation < generation }
        ripe -= waiting.prefix(ripe).count(where: isStale)
        waiting.removeAll(where: isStale)
        for (id, work) in held {
            let left = work.deliveries.filter { !isStale($0) }
            inFlight -= work.deliveries.count - left.count
            held[id]?.deliveries = left
            if left.isEmpty { held[id] = nil }
        }
        return burst.filter { !isStale($0) }
    }

    /// Gives deliveries back to the queue. One that the broker has had back often is set aside instead, since a return
    /// that the broker counts would bring it nearer to its delivery limit.
    private mutating func giveBack(_ deliveries: [AMQPDelivery]) -> [Action] {
        let often = deliveries.filter(Suspicion.isNearLimit)
        let tags = deliveries.lazy.filter { !Suspicion.isNearLimit($0) }.map(\.tag)
        return (tags.isEmpty ? [] : [.giveBack(Array(tags))]) + setAside(often)
    }

    /// Moves deliveries to a retry level.
    private mutating func setAside(_ deliveries: [AMQPDelivery]) -> [Action] {
        guard !deliveries.isEmpty else { return [] }
        nextID += 1
        let work = Work(id: nextID, deliveries: deliveries, isSuspect: false, purpose: .settingAside)
        running[work.id] = work
        inFlight += deliveries.count
        return [.start(work)]
    }

    /// Gives back the deliveries that waited at the last check already. The broker closes the channel of a consumer that
    /// keeps a delivery for half an hour. It then counts a return for every delivery of that channel.
    private mutating func holdTimePassed() -> [Action] {
        holdIsArmed = false
        let isOverdue = { [inHandBefore] (delivery: AMQPDelivery) in inHandBefore.contains(delivery.tag) }
        var overdue = waiting.filter(isOverdue)
        waiting.removeAll(where: isOverdue)
        ripe = min(ripe, waiting.count)
        for (id, work) in held.sorted(by: { $0.key < $1.key }) where work.deliveries.contains(where: isOverdue) {
            overdue += work.deliveries
            inFlight -= work.deliveries.count
            held[id] = nil
        }
        inHandBefore = Set((waiting + held.values.flatMap(\.deliveries)).map(\.tag))
        // A pause keeps only deliveries that are not to be returned once more.
        let actions = intake.mode == .paused ? setAside(overdue) : giveBack(overdue)
        return actions + (intake.mode == .running ? schedule() : armHoldIfNeeded())
    }

    private mutating func armHoldIfNeeded() -> [Action] {
        guard !holdIsArmed, !waiting.isEmpty || !held.isEmpty else { return [] }
        holdIsArmed = true
        return [.armHold]
    }
}

extension QueueMachine {
    /// Starts what may start. Nothing new starts while work is held: the broker's prefetch then stops the intake.
    private mutating func schedule() -> [Action] {
        var actions: [Action] = []
        while intake.mode == .running, held.isEmpty, running.count < policy.concurrentBatches,
            !running.values.contains(where: \.isSuspect), let work = nextWork()
        {
            running[work.id] = work
            inFlight += work.deliveries.count
            actions.append(.start(work))
        }
        if !waiting.isEmpty, ripe == 0, !ageIsArmed {
            ageIsArmed = true
            actions.append(.armAge)
        }
        return actions + armHoldIfNeeded()
    }

    private mutating func nextWork() -> Work? {
        guard let first = waiting.first else { return nil }
        if suspicion.suspects(first) {
            return running.isEmpty ? take(1, isSuspect: true) : nil
        }
        let (count, isFull) = batch
        let waits = !isFull && ripe == 0 && running.count >= policy.promptBatches
        return waits ? nil : take(count, isSuspect: false)
    }

    /// How many at the head of `waiting` go into one batch, and whether no more would.
    private var batch: (count: Int, isFull: Bool) {
        var count = 0
        var bytes = 0
        for delivery in waiting.prefix(policy.batchSize) {
            if suspicion.suspects(delivery) { return (count, false) }
            if delivery.failedAlone { return (max(count, 1), true) }
            bytes += delivery.body.count + delivery.properties.receivedBytes
            if count > 0, bytes > policy.batchBytes { return (count, true) }
            count += 1
        }
        return (count, count == policy.batchSize || bytes >= policy.batchBytes)
    }

    private mutating func take(_ count: Int, isSuspect: Bool) -> Work {
        defer {
            waiting.removeFirst(count)
            ripe = max(0, ripe - count)
            nextID += 1
        }
        let deliveries = Array(waiting.prefix(count))
        if deliveries.contains(where: { !$0.redelivered }) { suspicion.sawFresh() }
        return Work(id: nextID, deliveries: deliveries, isSuspect: isSuspect)
    }
}

extension Work {
    typealias ID = Int
}
