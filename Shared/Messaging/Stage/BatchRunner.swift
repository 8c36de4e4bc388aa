internal import AMQP
internal import Logging
internal import PushProtocol

/// Runs one batch: decodes, calls the handler, and settles. Used by many tasks at once.
struct BatchRunner: Sendable {
    let queue: WorkQueue
    let policy: StagePolicy
    let handler: ErasedHandler
    let bus: any MessageBus
    let acknowledger: MessageAcknowledger
    let routing: RepublishRouting
    let metrics: StageMetrics
    /// `nil` without tracing.
    let tracing: StageTracing?
    let logger: Logger

    /// The time limit for settling after the drain deadline.
    private static var settlingTimeAfterDeadline: Duration { .seconds(2) }

    private enum HandlerCallResult {
        case verdicts([Verdict])
        case outage(String)
        case failed(String)
        case cancelled
    }

    func run(_ batch: Batch) async -> BatchResult {
        switch batch.purpose {
        case .handling: await handle(batch)
        case .movingToRetryLevel: await moveToRetryLevel(batch.deliveries) ? .settled : .requeued
        }
    }

    private func handle(_ batch: Batch) async -> BatchResult {
        var poison: [PendingSettlement] = []
        var readable: [any ErasedDelivery] = []
        readable.reserveCapacity(batch.deliveries.count)
        let now = Timestamp.now
        for raw in batch.deliveries {
            do {
                readable.append(try decode(Inbound(raw, queue: queue, now: now)))
            } catch {
                let inbound = Inbound(raw, queue: queue, now: now)
                let reason = Reason(code: error.code, detail: "\(error)")
                poison.append(PendingSettlement(inbound, disposition: .deadLetter(reason), routing: routing))
                if let tracing { tracing.end(tracing.span(of: inbound, attribute: nil), .deadLetter(reason)) }
            }
        }
        guard !poison.isEmpty else { return await run(batch, readable) }
        let unreadable = poison
        async let poisonSettled = acknowledger.carryOut(unreadable)
        let result = await run(batch, readable)
        guard await poisonSettled else { return result.afterRequeueing }
        return result
    }

    private func decode(_ inbound: consuming Inbound) throws(WireError) -> any ErasedDelivery {
        let omitted = inbound.delivery.omittedBytes
        guard omitted == 0 else { throw .tooLarge(bytes: omitted, limit: AMQPConsumer.maximumBody) }
        return try handler.decode(inbound, tracing)
    }

    /// Calls the handler, with all messages at once if the weight limit allows. A failure halves the next chunk and a
    /// success doubles it, so a few calls isolate one bad message.
    private func run(_ batch: Batch, _ messages: [any ErasedDelivery]) async -> BatchResult {
        var batch = batch
        var rest = messages[...]
        while !rest.isEmpty {
            let isWhole = batch.chunkSize == nil && policy.batchWeight == .max
            let chunk = isWhole ? messages : nextChunk(of: rest, atMost: batch.chunkSize)
            let result: BatchResult
            switch await callHandler(chunk) {
            case .verdicts(let verdicts):
                result = await settle(chunk, verdicts)
                if case .settled = result {
                    tracing?.end(chunk, verdicts)
                } else {
                    tracing?.end(chunk, unsettledBecause: "requeued")
                }
                batch.chunkSize = batch.chunkSize.map { $0 * 2 }
            case .outage(let what):
                tracing?.end(Array(rest), unsettledBecause: "held")
                return .held(batch.left(rest.map(\.inbound.delivery)), by: what)
            case .cancelled: return await requeue(rest)
            case .failed(let failure) where chunk.count == 1:
                result = await settle(chunk[0], failure: failure)
            case .failed(let failure):
                batch.chunkSize = chunk.count / 2
                logger.warning(
                    "Batch failed; retrying it in halves",
                    metadata: [LogKey.count: "\(chunk.count)", LogKey.error: "\(failure)"])
                continue
            }
            rest = rest.dropFirst(chunk.count)
            guard case .settled = result else {
                return rest.isEmpty ? result : await requeue(rest)
            }
        }
        return .settled
    }

    /// The messages for the next call of the handler: at least one, and within the weight limit.
    private func nextChunk(of rest: ArraySlice<any ErasedDelivery>, atMost limit: Int?) -> [any ErasedDelivery] {
        let most = limit.map { rest.prefix(max(1, $0)) } ?? rest
        guard policy.batchWeight < .max else { return Array(most) }
        var weight = 0
        let light = most.prefix { message in
            weight += max(1, handler.weight(message))
            return weight <= policy.batchWeight
        }
        return Array(light.isEmpty ? most.prefix(1) : light)
    }

    private func callHandler(_ messages: [any ErasedDelivery]) async -> HandlerCallResult {
        let start = ContinuousClock.now
        do {
            let verdicts = try await handler.handle(messages)
            guard verdicts.count == messages.count else {
                metrics.handled(queue, .failed, in: start.duration(to: .now))
                return .failed("the handler returned \(verdicts.count) verdicts for \(messages.count) messages")
            }
            metrics.handled(queue, .decided, in: start.duration(to: .now))
            return .verdicts(verdicts)
        } catch let outage as Outage {
            metrics.handled(queue, .outage, in: start.duration(to: .now))
            logger.debug(
                "Dependency unavailable",
                metadata: [LogKey.detail: "\(outage.dependency)", LogKey.error: "\(outage.underlying)"])
            return .outage(outage.dependency)
        } catch {
            // An error of a cancelled handler is not about its messages.
            if Task.isCancelled { return .cancelled }
            metrics.handled(queue, .failed, in: start.duration(to: .now))
            return .failed("\(type(of: error)): \(error)")
        }
    }

    /// Executes verdicts, also those that arrive after a cancellation: their messages would otherwise be handled again.
    private func settle(_ messages: [any ErasedDelivery], _ verdicts: [Verdict]) async -> BatchResult {
        await despiteCancellation { await carryOut(messages, verdicts) } ? .settled : .requeued
    }

    /// Settles, also for a short time after a cancellation. Uses a new task then, because a cancelled task receives no
    /// confirms.
    private func despiteCancellation(_ settle: @escaping @Sendable () async -> Bool) async -> Bool {
        guard Task.isCancelled else { return await settle() }
        let settling = Task { await settle() }
        let limit = Task {
            try await Task.sleep(for: Self.settlingTimeAfterDeadline)
            settling.cancel()
        }
        defer { limit.cancel() }
        return await settling.value
    }

    private func carryOut(_ messages: [any ErasedDelivery], _ verdicts: [Verdict]) async -> Bool {
        func settlements() -> [PendingSettlement] {
            zip(messages, verdicts).map { message, verdict in
                let inbound = message.inbound
                return PendingSettlement(
                    inbound, of: message,
                    disposition: ResolvedDisposition(
                        verdict.disposition, attempt: inbound.attempt, maximumAttempts: policy.maximumAttempts),
                    outbound: verdict.outbound, remainder: verdict.remainder, routing: routing,
                    remainingRounds: policy.unroutableRounds)
            }
        }
        guard verdicts.allSatisfy(\.isDone) else { return await acknowledger.carryOut(settlements()) }
        return await acknowledger.finish(messages, verdicts, settlements: settlements)
    }

    private func settle(_ message: any ErasedDelivery, failure: String) async -> BatchResult {
        let inbound = message.inbound
        logger.error(
            "Handler failed on a single message; retrying or dead-lettering it",
            metadata: message.logMetadata.merging([LogKey.error: "\(failure)"]) { $1 })
        let disposition = ResolvedDisposition(
            failure: failure, attempt: inbound.attempt, maximumAttempts: policy.maximumAttempts)
        let settlement = PendingSettlement(inbound, of: message, disposition: disposition, routing: routing)
        tracing?.end(message.span, disposition)
        return await acknowledger.carryOut([settlement]) ? .settled : .requeued
    }

    private func requeue(_ messages: ArraySlice<any ErasedDelivery>) async -> BatchResult {
        tracing?.end(Array(messages), unsettledBecause: "requeued")
        return await requeue(messages.map(\.inbound.delivery))
    }

    /// Requeues deliveries. Moves those near the delivery limit to a retry level instead.
    private func requeue(_ deliveries: [AMQPDelivery]) async -> BatchResult {
        let nearLimit = deliveries.filter(PoisonMessageIsolation.isNearDeliveryLimit)
        let tags = deliveries.filter { !PoisonMessageIsolation.isNearDeliveryLimit($0) }.map(\.tag)
        metrics.requeued(queue, tags.count)
        bus.requeue(tags)
        if !nearLimit.isEmpty { _ = await despiteCancellation { await moveToRetryLevel(nearLimit) } }
        return .requeued
    }

    /// Moves deliveries to the shortest retry level without counting an attempt. The broker's delivery count starts at
    /// 0 again.
    private func moveToRetryLevel(_ deliveries: [AMQPDelivery]) async -> Bool {
        let now = Timestamp.now
        return await acknowledger.carryOut(
            deliveries.map {
                PendingSettlement(
                    Inbound($0, queue: queue, now: now), disposition: .postpone(.seconds5, .setAside),
                    routing: routing)
            })
    }
}

extension Batch {
    fileprivate func left(_ deliveries: [AMQPDelivery]) -> Batch {
        var batch = self
        batch.deliveries = deliveries
        return batch
    }
}

extension BatchResult {
    /// The result when another message of the batch was requeued. A held batch stays held.
    fileprivate var afterRequeueing: BatchResult {
        switch self {
        case .settled, .requeued: .requeued
        case .held: self
        }
    }
}
