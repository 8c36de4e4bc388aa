package import Logging
package import Messaging
package import PushProtocol

/// A sender's whole stage: pushes in, outcomes out. Which provider it is, its gateways know.
///
/// Every push is settled in one attempt: its finished targets as outcomes, batched by disposition, and what remains as
/// the same push with fewer targets, to be retried or, after the horizon, kept for a person. It never throws for
/// anything that a provider says or does.
package struct PushStageHandler: StageHandler {
    /// The most requests that one batch has in flight on one lane.
    static var concurrency: Int { 200 }
    /// About what a target with a notification and a time of its own adds to a push on the bus, as most have; where all share
    /// them it is two thirds of that.
    private static var bytesOfTarget: Int { 190 }

    private let provider: Provider
    private let sender: PushSender
    private let lanes: PushLanes
    private let executors: [AppID: any TaskExecutor]
    private let metrics: PushMetrics
    private let pulses: LanePulses
    private let logger: Logger

    /// - Parameter executors: where each app's pushes are handled, best where its connections are; the others' on Swift's own
    ///   pool of threads.
    package init(
        provider: Provider, lanes: PushLanes, executors: [AppID: any TaskExecutor] = [:],
        retry: RetryPolicy = RetryPolicy(),
        settled: SettledTargets? = nil, revocations: Revocations? = nil, clock: SenderClock = .system, logger: Logger
    ) {
        self.provider = provider
        self.lanes = lanes
        self.executors = executors
        sender = PushSender(
            lanes: lanes, settled: settled ?? SettledTargets(clock: clock), revocations: revocations, retry: retry,
            concurrency: Self.concurrency, clock: clock)
        metrics = PushMetrics(provider: provider)
        pulses = LanePulses(clock: clock)
        self.logger = logger
    }

    /// How a sender's stage takes its input. A batch is settled when its slowest target has answered, so there are many
    /// batches, of about as many targets as are sent at once. The bulk lane's pushes have hundreds of targets each, the
    /// interactive lane's mostly one: what the broker lends is bounded so that either way memory is. Several start without
    /// waiting for company, since what they take is the provider's time more than ours.
    ///
    /// The runtime's limit of attempts is there for failures of this handler. A push that is merely tried again reaches
    /// its own horizon with the eighth try at the latest, and waiting for a shut lane counts no attempt.
    /// Outcomes that reach no queue wait in place: pushing again would be heard.
    @Sendable package func policy(_ queue: WorkQueue) -> StagePolicy {
        guard case .senderPushes(_, let lane, let app) = queue else {
            preconditionFailure("a sender consumes pushes alone")
        }
        let isBulk = lane == .bulk
        return StagePolicy(
            batchSize: isBulk ? 4 : 32, batchBytes: Self.concurrency * Self.bytesOfTarget, batchAge: .milliseconds(2),
            prefetch: isBulk ? 64 : 500, concurrentBatches: 40, promptBatches: 4, unroutableRounds: nil,
            executor: executors[app])
    }

    package func decode(_ inbound: Inbound) throws(WireError) -> Push {
        let push = try Push.decode(wireBody: inbound.body)
        guard push.provider == provider else { throw .invalid(path: "provider", problem: "is not this sender's") }
        guard case .senderPushes(_, let lane, let app) = inbound.queue, app == push.app, lane == push.lane else {
            throw .invalid(path: "app", problem: "is not the one whose queue this is")
        }
        guard (1...Push.maximumTargets).contains(push.targets.count) else {
            throw .invalid(path: "targets", problem: "must be 1 to \(Push.maximumTargets)")
        }
        return push
    }

    package func handle(_ batch: [Delivery<Push>]) async throws -> [Verdict] {
        let lanes = LaneBatch.lanes(of: batch)
        if lanes.count == 1 { return try await handle(lanes[0]) }
        // One lane's trouble must not hold the others up.
        return try await withThrowingTaskGroup(of: (places: [Int], verdicts: [Verdict]).self) { group in
            for lane in lanes { group.addTask { (lane.places, try await handle(lane)) } }
            var verdicts = [Verdict](repeating: .done, count: batch.count)
            for try await part in group {
                for (place, verdict) in zip(part.places, part.verdicts) { verdicts[place] = verdict }
            }
            return verdicts
        }
    }

    /// The verdicts on the pushes of one lane, in their order.
    private func handle(_ batch: LaneBatch) async throws -> [Verdict] {
        let settlements = await sender.send(batch)
        let settled = settlements.finished.ordered
        let divided = settled.divided
        metrics.count(divided, of: batch.key.app)
        var outbound = [[Outbound]](repeating: [], count: batch.pushes.count)
        let pulses = pulses.count(settlements, on: batch.key)
        for group in OutcomeBatches.batches(divided, of: batch.pushes, pulses: pulses) {
            let message = try Outbound(group.outcomes, to: .outcomes, routingKey: group.routingKey)
            // Nearly every push has this one message and no other: the same list will do for all of them.
            let alone = [message]
            for place in group.places {
                if outbound[place].isEmpty { outbound[place] = alone } else { outbound[place].append(message) }
            }
        }
        if let gate = lanes[batch.key]?.gate {
            if let storm = gate.news() { outbound[0].append(try news(of: storm, with: batch.pushes[0].message)) }
        } else {
            for push in batch.pushes { report(unconfigured: push.message) }
        }
        return try batch.pushes.indices.map { place in
            guard let rest = settlements.rest(of: place) else { return .done(outbound[place]) }
            return Verdict(
                rest.disposition, outbound: outbound[place],
                remainder: try remainder(of: batch.pushes[place], rest.targets))
        }
    }

    /// Tells feedback of a storm on the lane of `push`, whatever the push came to.
    private func news(of storm: LanePulse.Storm, with push: Push) throws -> Outbound {
        let key = RoutingKey.outcomes(Outcomes.Origin(provider), .misconfigured)
        return try Outbound(pulses.message(storm, of: push), to: .outcomes, routingKey: key)
    }

    /// The push with only these targets; `nil` when that is how it came.
    private func remainder(of delivery: Delivery<Push>, _ targets: [Push.Target]) throws -> [UInt8]? {
        guard targets.count < delivery.message.targets.count else { return nil }
        var rest = delivery.message
        rest.targets = targets
        return try rest.wireBody()
    }

    private func report(unconfigured push: Push) {
        logger.info(
            "not sent: the app has no credentials here",
            metadata: [
                "app": "\(push.app)", "environment": "\(push.environment.rawValue)", "push": "\(push.trace.id)",
                "has_title": "\(push.content.title != nil)", "silent": "\(push.content.silent)",
                "targets": "\(push.targets.count)",
            ])
    }
}

extension PushRest {
    /// What becomes of the message; the reasons of providers go into the sentence, never into the word.
    fileprivate var disposition: Disposition {
        switch fate {
        case .retry(let level, let reason):
            .retry(
                after: level.delay, Reason(code: "targets-remain", detail: "\(targets.count) targets wait: \(reason)"))
        case .postpone(let level, let reason):
            .postpone(
                after: level.delay,
                Reason(code: "targets-held", detail: "\(targets.count) targets are held: \(reason)"))
        case .giveUp(let reason):
            .deadLetter(
                Reason(
                    code: "provider-unavailable",
                    detail: "\(targets.count) targets were tried until the horizon: \(reason)"))
        }
    }
}

extension WorkQueue {
    /// Both lanes of every app's pushes to one provider.
    package static func pushes(_ provider: Provider, of apps: [AppID]) -> [WorkQueue] {
        apps.flatMap { app in Lane.allCases.map { .senderPushes(provider, $0, app) } }
    }
}
