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
        try handler.decode(inbound)
    }

    private func run(_ work: Work, _ messages: [any Readable]) async -> WorkResult {
        guard !messages.isEmpty else { return .settled }
        if work.isIsolated { return await runSingly(work, messages) }
        switch await answer(messages) {
        case .verdicts(let verdicts):
            return await settle(messages, verdicts)
        case .outage(let what):
            return .held(work.left(messages.map(\.inbound.delivery)), by: what)
        case .cancelled:
            return giveBack(messages)
        case .failed(let failure) where messages.count == 1:
            return await settle(messages[0], failure: failure)
        case .failed(let failure):
            logger.warning(
                "A batch failed and is handled again one by one",
                metadata: [LogKey.count: "\(messages.count)", LogKey.error: "\(failure)"])
            var work = work
            work.isIsolated = true
            return await runSingly(work, messages)
        }
    }

    /// One after the other, each settled before the next begins.
    private func runSingly(_ work: Work, _ messages: [any Readable]) async -> WorkResult {
        for (index, message) in messages.enumerated() {
            let result: WorkResult
            switch await answer([message]) {
            case .verdicts(let verdicts): result = await settle([message], verdicts)
            case .failed(let failure): result = await settle(message, failure: failure)
            case .outage(let what): return .held(work.left(messages[index...].map(\.inbound.delivery)), by: what)
            case .cancelled: return giveBack(messages[index...])
            }
            guard case .settled = result else { return giveBack(messages[(index + 1)...]) }
        }
        return .settled
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

    /// What was decided by the time of a cancellation is still settled, for a short while: given back, it would be done
    /// again. The task is its own, since the broker's confirms do not come to one that is cancelled.
    private func settle(_ messages: [any Readable], _ verdicts: [Verdict]) async -> WorkResult {
        guard Task.isCancelled else { return await carryOut(messages, verdicts) ? .settled : .givenBack }
        let settling = Task { await carryOut(messages, verdicts) }
        let limit = Task {
            try await Task.sleep(for: Self.lastSettling)
            settling.cancel()
        }
        defer { limit.cancel() }
        return await settling.value ? .settled : .givenBack
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

    private func giveBack(_ messages: some Collection<any Readable>) -> WorkResult {
        metrics.givenBack(queue, messages.count)
        bus.requeue(messages.map(\.inbound.delivery.tag))
        return .givenBack
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
