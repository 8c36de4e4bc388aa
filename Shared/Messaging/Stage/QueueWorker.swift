internal import AMQP
internal import Logging
internal import PushProtocol
internal import Synchronization

/// Runs one queue of a stage: the thin shell around `QueueMachine`.
///
/// One task (`run`) owns the machine; everyone else sends it events.
final class QueueWorker: Sendable {
    private enum Signal: Sendable {
        case event(QueueMachine.Event)
        /// Resumed once the queue has no consumer.
        case whenQuiet(CheckedContinuation<Void, Never>)
        case deadlinePassed
    }

    private let runner: BatchRunner
    private let bus: any MessageBus
    let policy: StagePolicy
    private let metrics: StageMetrics
    private let gauges: StageMetrics.QueueGauges
    private let logger: Logger
    private let signals: AsyncStream<Signal>
    private let sender: AsyncStream<Signal>.Continuation
    private let snapshot = Mutex(QueueStatus.Condition.starting)

    var queue: WorkQueue { runner.queue }

    init(runner: BatchRunner) {
        self.runner = runner
        bus = runner.bus
        policy = runner.policy
        metrics = runner.metrics
        gauges = metrics.gauges(of: runner.queue)
        logger = runner.logger
        (signals, sender) = AsyncStream.makeStream()
    }

    var condition: QueueStatus.Condition { snapshot.withLock { $0 } }

    /// Gives back what is not begun and finishes what is, then `run` returns.
    func drain() { send(.drain) }

    /// Cancels the consumer and gives back what is not begun. Returns when the broker lends no more; before `run`, at
    /// once.
    func pause() async {
        send(.pause)
        guard condition != .starting else { return }
        await withCheckedContinuation { continuation in
            if case .terminated = sender.yield(.whenQuiet(continuation)) { continuation.resume() }
        }
    }

    func resume() { send(.resume) }

    private func send(_ event: QueueMachine.Event) { sender.yield(.event(event)) }
}

extension QueueWorker {
    /// Runs until drained, or cancelled.
    func run() async {
        // Discarding: any other group keeps each child until somebody asks for its result, and grows with every batch.
        await withDiscardingTaskGroup { group in
            var machine = QueueMachine(policy: policy)
            var subscription: BusSubscription?
            var waiters: [CheckedContinuation<Void, Never>] = []
            perform(machine.start(), &subscription, &group)
            show(machine)
            for await signal in signals {
                switch signal {
                case .event(let event):
                    if case .drain = event { armDeadline(&group) }
                    perform(machine.on(event), &subscription, &group)
                case .whenQuiet(let waiter): waiters.append(waiter)
                case .deadlinePassed: group.cancelAll()
                }
                show(machine)
                if machine.isQuiet {
                    for waiter in waiters { waiter.resume() }
                    waiters = []
                }
                if machine.isFinished { break }
            }
            // Only a cancellation ends the signals early: what is not settled then is delivered again.
            sender.finish()
            for waiter in waiters { waiter.resume() }
            // Who asked between the last signal and the end is still in the stream.
            for await signal in signals {
                if case .whenQuiet(let waiter) = signal { waiter.resume() }
            }
            group.cancelAll()
        }
    }

    private func perform(
        _ actions: [QueueMachine.Action], _ subscription: inout BusSubscription?, _ group: inout DiscardingTaskGroup
    ) {
        for action in actions {
            switch action {
            case .subscribe(let prefetch):
                let new = bus.subscribe(queue: queue.name, prefetch: prefetch)
                subscription = new
                group.addTask { [self] in
                    for await burst in new.deliveries { send(.delivered(burst)) }
                    send(.subscriptionEnded)
                }
            case .unsubscribe:
                if let old = subscription { group.addTask { await old.cancel() } }
                subscription = nil
            case .armAge:
                wake(.aged, after: policy.batchAge, &group)
            case .armHold:
                wake(.holdTimePassed, after: policy.holdLimit / 2, &group)
            case .armRetry(let id, let failures):
                wake(.retryDue(id), after: policy.backoff.delay(afterFailures: failures), &group)
            case .start(let work):
                if work.purpose == .handling { metrics.consumed(queue, work.deliveries.count) }
                group.addTask { [self] in send(.finished(work.id, await runner.run(work))) }
            case .giveBack(let tags):
                metrics.givenBack(queue, tags.count)
                bus.requeue(tags)
            case .reportLoss:
                logger.error("The bus ended the subscription; this queue is no longer consumed")
            }
        }
    }

    private func wake(
        _ event: QueueMachine.Event, after delay: Duration, _ group: inout DiscardingTaskGroup
    ) {
        group.addTask { [self] in
            // Cut short by the end of the worker only, when no one listens any more.
            try? await Task.sleep(for: delay)
            send(event)
        }
    }

    private func armDeadline(_ group: inout DiscardingTaskGroup) {
        group.addTask { [self] in
            try? await Task.sleep(for: policy.drainDeadline)
            sender.yield(.deadlinePassed)
        }
    }

    /// Shows the machine's state to probes and metrics, and logs an outage's beginning and end.
    private func show(_ machine: QueueMachine) {
        gauges.show(inFlight: machine.inFlight, isOut: machine.outage != nil)
        let now = QueueStatus.Condition(machine)
        let before = snapshot.withLock { condition in
            defer { condition = now }
            return condition
        }
        guard now != before else { return }
        switch (before, now) {
        case (_, .holding(let what)):
            logger.warning("Holding messages: a dependency is away", metadata: [LogKey.detail: "\(what)"])
        case (.holding(let what), .consuming):
            logger.notice("Taking messages again", metadata: [LogKey.detail: "\(what)"])
        case (_, .paused), (_, .draining), (_, .consuming), (_, .starting):
            logger.debug("Queue is \(now)")
        }
    }
}
