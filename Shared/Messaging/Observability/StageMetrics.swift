internal import AMQP
internal import Metrics
internal import PushProtocol
internal import Synchronization

/// The metrics of one stage. Usable from any task; each instrument is created on first use.
///
/// Uses the metrics factory of the time when the stage was created.
final class StageMetrics: Sendable {
    /// The result of a handler call: the label `answer`.
    enum HandlerAnswer: String { case decided, outage, failed }

    private struct Key: Hashable {
        var name: String
        var labels: [String]
    }

    private struct Instruments {
        var counters: [Key: Counter] = [:]
        var timers: [Key: Timer] = [:]
        var queueInstruments: [WorkQueue: QueueInstruments] = [:]
    }

    /// The instruments that every batch of a queue uses.
    private struct QueueInstruments: Sendable {
        let consumed: Counter
        let batchSize: Recorder
        let done: Counter
        let decided: Timer
    }

    private let stage: String
    private let factory: any MetricsFactory
    private let instruments = Mutex(Instruments())

    init(stage: String) {
        self.stage = stage
        factory = MetricsSystem.factory
    }

    func consumed(_ queue: WorkQueue, _ messages: Int) {
        let queueInstruments = queueInstruments(queue)
        queueInstruments.consumed.increment(by: messages)
        queueInstruments.batchSize.record(messages)
    }

    private func queueInstruments(_ queue: WorkQueue) -> QueueInstruments {
        instruments.withLock { instruments in
            instruments.queueInstruments.value(for: queue) {
                func labels(_ more: [(String, String)]) -> [(String, String)] {
                    self.labels([(MetricLabel.queue, queue.name)] + more)
                }
                return QueueInstruments(
                    consumed: Counter(label: MetricName.consumed, dimensions: labels([]), factory: factory),
                    batchSize: Recorder(label: MetricName.batchSize, dimensions: labels([]), factory: factory),
                    done: Counter(
                        label: MetricName.settled,
                        dimensions: labels([(MetricLabel.disposition, ResolvedDisposition.done.label)]),
                        factory: factory),
                    decided: timer(labels([(MetricLabel.answer, HandlerAnswer.decided.rawValue)])))
            }
        }
    }

    private func timer(_ labels: [(String, String)]) -> Timer {
        Timer(
            label: MetricName.handleDuration, dimensions: labels, preferredDisplayUnit: .seconds, factory: factory)
    }

    /// Counts messages with the disposition `done`.
    func done(_ queue: WorkQueue, _ messages: Int) { queueInstruments(queue).done.increment(by: messages) }

    /// Counts the settlements of one queue's batch.
    func settled(_ settlements: [PendingSettlement]) {
        guard let queue = settlements.first?.inbound.queue else { return }
        let done = settlements.count { $0.disposition.isDone }
        if done > 0 { self.done(queue, done) }
        for settlement in settlements where !settlement.disposition.isDone { settled(queue, settlement.disposition) }
    }

    private func settled(_ queue: WorkQueue, _ disposition: ResolvedDisposition) {
        let queue = (MetricLabel.queue, queue.name)
        count(MetricName.settled, [queue, (MetricLabel.disposition, disposition.label)])
        switch disposition {
        case .done: break
        case .retry(let level, let reason), .postpone(let level, let reason):
            count(
                MetricName.retried, [queue, (MetricLabel.level, level.rawValue), (MetricLabel.reason, reason.code)])
        case .deadLetter(let reason): count(MetricName.deadLettered, [queue, (MetricLabel.reason, reason.code)])
        case .discard(let reason): count(MetricName.discarded, [queue, (MetricLabel.reason, reason.code)])
        }
    }

    /// Counts the broker's answers to one publish.
    func published(_ messages: [AMQPMessage], _ answers: [AMQPConfirmation]) {
        var confirmed: [String: Int] = [:]
        for (message, answer) in zip(messages, answers) {
            switch answer {
            case .confirmed: confirmed[message.exchange, default: 0] += 1
            case .nacked: published(1, message.exchange, "nacked")
            case .returned: published(1, message.exchange, "returned")
            }
        }
        for (exchange, count) in confirmed { published(count, exchange, "confirmed") }
    }

    private func published(_ messages: Int, _ exchange: String, _ result: String) {
        count(MetricName.published, [(MetricLabel.exchange, exchange), (MetricLabel.result, result)], by: messages)
    }

    func requeued(_ queue: WorkQueue, _ messages: Int) {
        count(MetricName.givenBack, [(MetricLabel.queue, queue.name)], by: messages)
    }

    func handled(_ queue: WorkQueue, _ answer: HandlerAnswer, in duration: Duration) {
        if answer == .decided { return queueInstruments(queue).decided.record(duration: duration) }
        let labels = labels([(MetricLabel.queue, queue.name), (MetricLabel.answer, answer.rawValue)])
        let timer = instruments.withLock { instruments in
            instruments.timers.value(for: key(MetricName.handleDuration, labels)) { self.timer(labels) }
        }
        timer.record(duration: duration)
    }

    /// The gauges of one queue, created once because every batch sets them.
    struct QueueGauges: Sendable {
        fileprivate let inFlight: Gauge
        fileprivate let outage: Gauge
        fileprivate let age: Gauge

        func show(inFlight messages: Int, isOut: Bool) {
            inFlight.record(messages)
            outage.record(isOut ? 1 : 0)
            // An idle queue has no old message.
            if messages == 0 { age.record(0) }
        }

        /// Shows the time since the first of `deliveries` was published. Ignores messages that a retry delayed, and
        /// those without a timestamp.
        func showAge(of deliveries: [AMQPDelivery], now: Timestamp) {
            guard let first = deliveries.first, first.exchange != ExchangeName.return.name,
                let published = first.properties.timestamp
            else { return }
            age.record(max(0, now.seconds - published))
        }
    }

    func gauges(of queue: WorkQueue) -> QueueGauges {
        let labels = labels([(MetricLabel.queue, queue.name)])
        func gauge(_ name: String) -> Gauge { Gauge(label: name, dimensions: labels, factory: factory) }
        return QueueGauges(
            inFlight: gauge(MetricName.inFlight), outage: gauge(MetricName.outage), age: gauge(MetricName.queueAge))
    }

    private func count(_ name: String, _ more: [(String, String)], by amount: Int = 1) {
        let labels = labels(more)
        let counter = instruments.withLock { instruments in
            instruments.counters.value(for: key(name, labels)) {
                Counter(label: name, dimensions: labels, factory: factory)
            }
        }
        counter.increment(by: amount)
    }

    private func labels(_ more: [(String, String)]) -> [(String, String)] { [(MetricLabel.stage, stage)] + more }

    private func key(_ name: String, _ labels: [(String, String)]) -> Key { Key(name: name, labels: labels.map(\.1)) }
}

extension Dictionary {
    /// The value for `key`, created if missing.
    fileprivate mutating func value(for key: Key, make: () -> Value) -> Value {
        if let value = self[key] { return value }
        let value = make()
        self[key] = value
        return value
    }
}
