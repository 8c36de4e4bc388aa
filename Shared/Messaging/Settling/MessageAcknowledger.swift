internal import AMQP
internal import Logging
internal import Primitives
internal import PushProtocol

/// Executes verdicts: publishes, waits for confirms, republishes refused messages, and acknowledges.
struct MessageAcknowledger: Sendable {
    let bus: any MessageBus
    let backoff: Backoff
    /// The `app-id` of published messages.
    let service: String
    let metrics: StageMetrics
    /// Notes the settled notifications.
    var census: StageCensus?
    /// Whether messages have spans, whose context goes into the headers of published messages.
    var isTracing = false
    let logger: Logger

    /// Settles each message after the confirms of everything it publishes.
    ///
    /// Retries messages that the broker did not accept, until they are confirmed or the message moves to a retry level.
    /// On cancellation, or when the bus is closed, requeues the unsettled messages.
    ///
    /// - Returns: Whether every message was settled.
    func carryOut(_ settlements: [PendingSettlement]) async -> Bool { await carryOut(finish(settlements), failures: 0) }

    /// ``carryOut(_:)`` for batches whose verdicts are all `done`, the usual case. Creates `settlements` only when the
    /// broker does not confirm everything at the first publish.
    func finish(_ messages: [any ErasedDelivery], _ verdicts: [Verdict], settlements: () -> [PendingSettlement]) async
        -> Bool
    {
        var publishBatch = PublishBatch(service: service, room: messages.count)
        var idle: [AMQPDeliveryTag] = []
        var waiting: [AMQPDeliveryTag] = []
        waiting.reserveCapacity(messages.count)
        for index in messages.indices {
            let tag = messages[index].tag
            if verdicts[index].outbound.isEmpty { idle.append(tag) } else { waiting.append(tag) }
            let span = isTracing ? messages[index].span : nil
            for message in verdicts[index].outbound { publishBatch.add(message, because: span) }
        }
        publishBatch.writeTraces()
        guard let queue = messages.first?.inbound.queue else { return true }
        // Noted before the acknowledgement, so that a report never misses a message that is no longer in the queue.
        census?.done(messages, verdicts) { $0.isEmpty }
        acknowledge(idle, of: queue)
        logDone(messages, verdicts) { $0.isEmpty }
        guard !waiting.isEmpty else { return true }
        do {
            let answers = try await bus.publish(publishBatch.messages)
            report(answers, to: publishBatch.messages)
            if answers.allSatisfy({ $0 == .confirmed }) {
                census?.done(messages, verdicts) { !$0.isEmpty }
                acknowledge(waiting, of: queue)
                logDone(messages, verdicts) { !$0.isEmpty }
                return true
            }
            var open = settlements().filter { $0.messageCount > 0 }
            record(answers, at: publishBatch.indices, in: &open)
            return await carryOut(finish(open), failures: 1)
        } catch {
            requeue(waiting, error)
            return false
        }
    }

    private func acknowledge(_ tags: [AMQPDeliveryTag], of queue: WorkQueue) {
        guard !tags.isEmpty else { return }
        bus.acknowledge(tags)
        metrics.done(queue, tags.count)
    }

    private func carryOut(_ settlements: [PendingSettlement], failures: Int) async -> Bool {
        var open = settlements
        var failures = failures
        while !open.isEmpty {
            do {
                if failures > 0 { try await Task.sleep(for: backoff.delay(afterFailures: failures)) }
                let progressed = try await publish(&open)
                open = finish(open)
                failures = progressed ? 0 : failures + 1
            } catch {
                requeue(open.map(\.tag), error)
                return false
            }
        }
        return true
    }

    private func requeue(_ tags: [AMQPDeliveryTag], _ error: any Error) {
        logger.notice(
            "Requeued messages that could not be settled",
            metadata: [LogKey.count: "\(tags.count)", LogKey.error: "\(error)"])
        bus.requeue(tags)
    }

    /// Publishes the next messages of all settlements; shared ones once. Returns whether all were confirmed.
    private func publish(_ open: inout [PendingSettlement]) async throws(AMQPError) -> Bool {
        var publishBatch = PublishBatch(service: service, room: open.count)
        for settlement in open {
            switch settlement.next {
            case .publish(let outbound):
                let span = isTracing ? settlement.message?.span : nil
                for message in outbound { publishBatch.add(message, because: span) }
            case .republish(let copy): publishBatch.add(copy)
            case .acknowledge, .reject: break
            }
        }
        publishBatch.writeTraces()
        let answers = try await bus.publish(publishBatch.messages)
        report(answers, to: publishBatch.messages)
        guard !answers.allSatisfy({ $0 == .confirmed }) else {
            for index in open.indices { open[index].confirm() }
            return true
        }
        record(answers, at: publishBatch.indices, in: &open)
        return false
    }

    /// Records the broker's answers in `open`. `indices` gives the answer of each message.
    private func record(_ answers: [AMQPConfirmation], at indices: [Int], in open: inout [PendingSettlement]) {
        var indices = indices[...]
        for index in open.indices {
            let messageCount = open[index].messageCount
            open[index].record(indices.prefix(messageCount).map { answers[$0] })
            indices = indices.dropFirst(messageCount)
        }
    }

    private struct PublishBatch {
        let service: String
        private(set) var messages: [AMQPMessage] = []
        /// The index into `messages` of each added message, in the order of additions.
        private(set) var indices: [Int] = []
        private var last: (outbound: Outbound, index: Int)?
        private var known: [ObjectIdentifier: Int] = [:]
        /// The spans of the inputs of each message, by its index.
        private var causes: [Int: [MessageSpan]] = [:]

        /// - Parameter room: The expected number of additions.
        init(service: String, room: Int) {
            self.service = service
            indices.reserveCapacity(room)
        }

        /// Adds a message that may be shared, usually with the previous addition.
        ///
        /// - Parameter span: the span of the input; `nil` without tracing.
        mutating func add(_ outbound: Outbound, because span: MessageSpan?) {
            add(outbound)
            if let span, let index = indices.last { causes[index, default: []].append(span) }
        }

        /// Writes the context of the inputs' spans into the headers. Without tracing, messages keep their headers.
        mutating func writeTraces() {
            for (index, spans) in causes {
                messages[index].properties.headers.merge(TraceLinks.headers(of: spans)) { $1 }
            }
        }

        private mutating func add(_ outbound: Outbound) {
            if let last, last.outbound === outbound { return indices.append(last.index) }
            let index = known[ObjectIdentifier(outbound)] ?? messages.count
            if index == messages.count {
                known[ObjectIdentifier(outbound)] = index
                messages.append(outbound.message(from: service))
            }
            indices.append(index)
            last = (outbound, index)
        }

        mutating func add(_ copy: AMQPMessage) {
            indices.append(messages.count)
            messages.append(copy)
        }
    }

    /// Acknowledges the finished settlements, and returns the others.
    private func finish(_ settlements: [PendingSettlement]) -> [PendingSettlement] {
        var open: [PendingSettlement] = []
        var done: [PendingSettlement] = []
        var rejected: [PendingSettlement] = []
        for settlement in settlements {
            if settlement.isRejected {
                rejected.append(settlement)
            } else if settlement.messageCount > 0 {
                open.append(settlement)
            } else {
                done.append(settlement)
            }
        }
        census?.settled(done)
        census?.settled(rejected)
        if !done.isEmpty { bus.acknowledge(done.map(\.tag)) }
        if !rejected.isEmpty { bus.reject(rejected.map(\.tag)) }
        metrics.settled(done)
        metrics.settled(rejected)
        for settlement in done { report(settlement) }
        for settlement in rejected { report(settlement) }
        return open
    }

    private func report(_ settlement: PendingSettlement) {
        logger.log(
            level: settlement.disposition.logLevel, "Settled: \(settlement.disposition.label)",
            metadata: settlement.logMetadata)
    }

    /// Logs the messages whose outbound messages fulfil a condition.
    private func logDone(
        _ messages: [any ErasedDelivery], _ verdicts: [Verdict], where condition: ([Outbound]) -> Bool
    ) {
        guard logger.logLevel <= .debug else { return }
        for (message, verdict) in zip(messages, verdicts) where condition(verdict.outbound) {
            logger.debug("Settled: \(verdict.disposition.label)", metadata: message.logMetadata)
        }
    }

    private func report(_ answers: [AMQPConfirmation], to messages: [AMQPMessage]) {
        metrics.published(messages, answers)
        for (message, answer) in zip(messages, answers) {
            switch answer {
            case .confirmed: break
            case .nacked:
                logger.warning(
                    "Broker nacked a message; publishing it again", metadata: message.logMetadata)
            case .returned(let code, let text):
                let next =
                    answer.isPermanentRefusal
                    ? "Broker refused a message permanently; dead-lettering its input"
                    : "Message was returned; publishing it again. Apply the topology or check permissions"
                logger.error(
                    "\(next)",
                    metadata: message.logMetadata.merging([LogKey.reply: "\(code) \(text)"]) { $1 })
            }
        }
    }
}
