internal import AMQP
internal import Logging
internal import PushProtocol

/// Takes one batch through decoding, the handler and settling. Used by many tasks at once.
struct BatchRunner: Sendable {
    let queue: WorkQueue
    let policy: StagePolicy
    let handler: AnyStageHandler
    let bus: any MessageBus
    let settler: Settler
    let redirection: Redirection
    let metrics: StageMetrics
    let logger: Logger

    /// How long settling may take that begins after the drain deadline.
    private static var lastSettling: Duration { .seconds(2) }

    private enum Answer {
        case verdicts([Verdict])
        case outage(String)
        case failed(String)
        case cancelled
    }

    func run(_ work: Work) async -> WorkResult {
        switch work.purpose {
        case .handling: await handle(work)
        case .settingAside: await setAside(work.deliveries) ? .settled : .givenBack
        }
    }

    private func handle(_ work: Work) async -> WorkResult {
        var poison: [Settlement] = []
        var readable: [any Readable] = []
        readable.reserveCapacity(work.deliveries.count)
        let now = Timestamp.now
        for raw in work.deliveries {
            do {
                readable.append(try decode(Inbound(raw, queue: queue, now: now)))
            } catch {
                let inbound = Inbound(raw, queue: queue, now: now)
                let reason = Reason(code: error.code, detail: "\(error)")
                poison.append(Settlement(inbound, conclusion: .deadLetter(reason), redirection: redirection))
            }
        }
        guard !poison.isEmpty else { return await run(work, readable) }
        let unreadable = poison
        async let poisonSettled = settler.carryOut(unreadable)
        let result = await run(work, readable)
        guard await poisonSettled else { return result.afterGivingBack }
        return result
    }

    private func decode(_ inbound: consuming Inbound) throws(WireError) -> any Readable {
        let omitted = inbound.delivery.omittedBytes
        guard omitted == 0 else { throw .tooLarge(bytes: omitted, limit: AMQPConsumer.maximumBody) }
        return try handler.decode(inbound)
    }

    /// Hands the messages to the handler, all at once where the policy's weight allows it. A failure halves the next
    /// portion, and a success doubles it, so that one bad message among many is alone after a few calls.
    private func run(_ work: Work, _ messages: [any Readable]) async -> WorkResult {
        var work = work
        var rest = messages[...]
        while !rest.isEmpty {
            let isWhole = work.portion == nil && policy.batchWeight == .max
            let portion = isWhole ? messages : portion(of: rest, atMost: work.portion)
            let result: WorkResult
            switch await answer(portion) {
            case .verdicts(let verdicts):
                result = await settle(portion, verdicts)
                work.portion = work.portion.map { $0 * 2 }
            case .outage(let what): return .held(work.left(rest.map(\.inbound.delivery)), by: what)
            case .cancelled: return await giveBack(rest.map(\.inbound.delivery))
            case .failed(let failure) where portion.count == 1:
                result = await settle(portion[0], failure: failure)
            case .failed(let failure):
                work.portion = portion.count / 2
                logger.warning(
                    "A batch failed; handling it again in halves",
                    metadata: [LogKey.count: "\(portion.count)", LogKey.error: "\(failure)"])
                continue
            }
            rest = rest.dropFirst(portion.count)
            guard case .settled = result else {
                return rest.isEmpty ? result : await giveBack(rest.map(\.inbound.delivery))
            }
        }
        return .settled
    }

    /// The messages at the head of `rest` for one call of the handler: at least one, and no more than weigh as much as the
    /// policy allows.
    private func portion(of rest: ArraySlice<any Readable>, atMost limit: Int?) -> [any Readable] {
        let most = limit.map { rest.prefix(max(1, $0)) } ?? rest
        guard policy.batchWeight < .max else { return Array(most) }
        var weight = 0
        let light = most.prefix { message in
            weight += max(1, handler.weight(message))
            return weight <= policy.batchWeight
        }
        return Array(light.isEmpty ? most.prefix(1) : light)
    }

    private func answer(_ messages: [any Readable]) async -> Answer {
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
                "A dependency is away",
                metadata: [LogKey.detail: "\(outage.what)", LogKey.error: "\(outage.underlying)"])
            return .outage(outage.what)
        } catch {
            // What a cancelled handler throws says nothing about its messages.
            if Task.isCancelled { return .cancelled }
            metrics.handled(queue, .failed, in: start.duration(to: .now))
            return .failed("\(type(of: error)): \(error)")
        }
    }

    /// Carries verdicts out that came in time for a cancellation too: their messages would be handled again otherwise.
    private func settle(_ messages: [any Readable], _ verdicts: [Verdict]) async -> WorkResult {
        await despiteCancellation { await carryOut(messages, verdicts) } ? .settled : .givenBack
    }

    /// Settles, for a short while after a cancellation too. The task is its own then, since a cancelled one gets no
    /// confirms.
    private func despiteCancellation(_ settle: @escaping @Sendable () async -> Bool) async -> Bool {
        guard Task.isCancelled else { return await settle() }
        let settling = Task { await settle() }
        let limit = Task {
            try await Task.sleep(for: Self.lastSettling)
            settling.cancel()
        }
        defer { limit.cancel() }
        return await settling.value
    }

    private func carryOut(_ messages: [any Readable], _ verdicts: [Verdict]) async -> Bool {
        func settlements() -> [Settlement] {
            zip(messages, verdicts).map { message, verdict in
                let inbound = message.inbound
                return Settlement(
                    inbound,
                    conclusion: Conclusion(
                        verdict.disposition, attempt: inbound.attempt, maximumAttempts: policy.maximumAttempts),
                    outbound: verdict.outbound, remainder: verdict.remainder, redirection: redirection,
                    patience: policy.unroutableRounds)
            }
        }
        guard verdicts.allSatisfy(\.isDone) else { return await settler.carryOut(settlements()) }
        return await settler.finish(messages, verdicts, settlements: settlements)
    }

    private func settle(_ message: any Readable, failure: String) async -> WorkResult {
        let inbound = message.inbound
        logger.error(
            "A message failed alone",
            metadata: [
                LogKey.messageID: "\(inbound.messageID ?? "-")", LogKey.attempt: "\(inbound.attempt)",
                LogKey.error: "\(failure)",
            ])
        let conclusion = Conclusion(
            failure: failure, attempt: inbound.attempt, maximumAttempts: policy.maximumAttempts)
        let settlement = Settlement(inbound, conclusion: conclusion, redirection: redirection)
        return await settler.carryOut([settlement]) ? .settled : .givenBack
    }

    /// Gives deliveries back to the queue. One that the broker has had back often is moved to a retry level instead.
    private func giveBack(_ deliveries: [AMQPDelivery]) async -> WorkResult {
        let often = deliveries.filter(Suspicion.isNearLimit)
        let tags = deliveries.filter { !Suspicion.isNearLimit($0) }.map(\.tag)
        metrics.givenBack(queue, tags.count)
        bus.requeue(tags)
        if !often.isEmpty { _ = await despiteCancellation { await setAside(often) } }
        return .givenBack
    }

    /// Moves deliveries to the shortest retry level. No attempt is counted, and the broker counts returns from nothing.
    private func setAside(_ deliveries: [AMQPDelivery]) async -> Bool {
        let now = Timestamp.now
        return await settler.carryOut(
            deliveries.map {
                Settlement(
                    Inbound($0, queue: queue, now: now), conclusion: .postpone(.seconds5, .setAside),
                    redirection: redirection)
            })
    }
}

extension Work {
    fileprivate func left(_ deliveries: [AMQPDelivery]) -> Work {
        var work = self
        work.deliveries = deliveries
        return work
    }
}

extension WorkResult {
    /// The same, when some other message of the batch went back. Held work stays held: it was not given back.
    fileprivate var afterGivingBack: WorkResult {
        switch self {
        case .settled, .givenBack: .givenBack
        case .held: self
        }
    }
}
