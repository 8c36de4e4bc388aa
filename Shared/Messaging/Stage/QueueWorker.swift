internal import AMQP
internal import Logging
internal import Primitives
internal import PushProtocol
internal import Synchronization

/// Runs one queue of a stage: executes the actions of a ``QueueStateMachine``.
///
/// One task (`run`) owns the state machine; other tasks send it events.
final class QueueWorker: Sendable {
    private enum WorkerInput: Sendable {
        case event(QueueStateMachine.Event)
        /// Resumed when the queue has no consumer.
        case whenUnsubscribed(CheckedContinuation<Void, Never>)
        case deadlinePassed
    }

    private let runner: BatchRunner
    private let bus: any MessageBus
    let policy: StagePolicy
    private let metrics: StageMetrics
    private let gauges: StageMetrics.QueueGauges
    private let logger: Logger
    private let inputs: AsyncStream<WorkerInput>
    private let sender: AsyncStream<WorkerInput>.Continuation
    private let snapshot = Mutex(QueueStatus.State.starting)

    var queue: WorkQueue { runner.queue }

    init(runner: BatchRunner) {
        self.runner = runner
        bus = runner.bus
        policy = runner.policy
        metrics = runner.metrics
        gauges = metrics.gauges(of: runner.queue)
        logger = runner.logger
        (inputs, sender) = AsyncStream.makeStream()
    }

    var state: QueueStatus.State { snapshot.withLock { $0 } }

    /// Requeues waiting deliveries and finishes running batches; `run` then returns.
    func drain() { send(.drain) }

    /// Cancels the consumer and requeues waiting deliveries. Returns after the last delivery; before `run`,
    /// immediately.
    func pause() async {
        send(.pause)
        guard state != .starting else { return }
        await withCheckedContinuation { continuation in
            if case .terminated = sender.yield(.whenUnsubscribed(continuation)) { continuation.resume() }
        }
    }

    func resume() { send(.resume) }

    private func send(_ event: QueueStateMachine.Event) { sender.yield(.event(event)) }
}

extension QueueWorker {
    /// Runs until drained or cancelled.
    func run() async {
        // Discarding: other task groups keep the result of every child task, one per batch.
        await withDiscardingTaskGroup { group in
            var machine = QueueStateMachine(policy: policy)
            var subscription: BusSubscription?
            var waiters: [CheckedContinuation<Void, Never>] = []
            perform(machine.start(), &subscription, &group)
            show(machine)
            for await input in inputs {
                switch input {
                case .event(let event):
                    if case .drain = event { armDeadline(&group) }
                    perform(machine.on(event), &subscription, &group)
                case .whenUnsubscribed(let waiter): waiters.append(waiter)
                case .deadlinePassed: group.cancelAll()
                }
                show(machine)
                if machine.hasNoConsumer {
                    for waiter in waiters { waiter.resume() }
                    waiters = []
                }
                if machine.isFinished { break }
            }
            // Only a cancellation ends the inputs early. The broker redelivers the unsettled messages.
            sender.finish()
            for waiter in waiters { waiter.resume() }
            // Resumes callers that were added after the last input.
            for await input in inputs {
                if case .whenUnsubscribed(let waiter) = input { waiter.resume() }
            }
            group.cancelAll()
        }
    }

    private func perform(
        _ actions: [QueueStateMachine.Action], _ subscription: inout BusSubscription?,
        _ group: inout DiscardingTaskGroup
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
            case .armLingerTimer:
                wake(.lingerElapsed, after: policy.batchLinger, &group)
            case .armHoldTimer:
                wake(.holdTimePassed, after: policy.holdLimit / 2, &group)
            case .armRetryTimer(let id, let failures):
                wake(.retryDue(id), after: policy.backoff.delay(afterFailures: failures), &group)
            case .start(let batch):
                if batch.purpose == .handling {
                    metrics.consumed(queue, batch.deliveries.count)
                    gauges.showAge(of: batch.deliveries, now: .now)
                }
                group.addTask { [self] in send(.finished(batch.id, await runner.run(batch))) }
            case .requeue(let tags):
                metrics.requeued(queue, tags.count)
                bus.requeue(tags)
            case .reportSubscriptionLost:
                logger.error("Bus ended the subscription; the queue is no longer consumed")
            }
        }
    }

    private func wake(
        _ event: QueueStateMachine.Event, after delay: Duration, _ group: inout DiscardingTaskGroup
    ) {
        group.addTask { [self] in
            // Interrupted only at the end of the worker.
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

    /// Updates status and metrics, and logs the start and end of an outage.
    private func show(_ machine: QueueStateMachine) {
        gauges.show(inFlight: machine.inFlight, isOut: machine.outage != nil)
        let now = QueueStatus.State(machine)
        let before = snapshot.withLock { state in
            defer { state = now }
            return state
        }
        guard now != before else { return }
        switch (before, now) {
        case (_, .holding(let what)):
            logger.warning("Dependency unavailable; holding messages", metadata: [LogKey.detail: "\(what)"])
        case (.holding(let what), .consuming):
            logger.notice("Dependency available again; resuming", metadata: [LogKey.detail: "\(what)"])
        case (_, .paused), (_, .draining), (_, .consuming), (_, .starting):
            logger.debug("Queue is \(now)")
        }
    }
}
