package import FoundationEssentials
package import Logging
package import Messaging
package import PushProtocol
import Providers

/// The stage handler of a sender: consumes pushes, publishes outcomes. The same for all providers.
///
/// Publishes the outcomes of finished targets, grouped by disposition. Republishes a push with its remaining targets
/// for a retry, or dead-letters it after the retry horizon. Never throws for an error of a provider.
package struct PushStageHandler: StageHandler {
    /// The most requests in flight for one batch and route.
    static var concurrency: Int { 200 }
    /// The approximate size of a target in a push message. A third less if all targets share a notification and a time.
    private static var bytesOfTarget: Int { 190 }

    private let provider: Provider
    private let sender: PushSender
    private let routes: ProviderRoutes
    private let executors: @Sendable (AppID) -> (any TaskExecutor)?
    private let metrics: PushMetrics
    private let healthCounters: RouteHealthCounters
    private let logger: Logger

    /// - Parameter executors: returns the executor of an app's pushes, ideally that of its connections; the default is
    ///   Swift's global executor.
    package init(
        provider: Provider, routes: ProviderRoutes,
        executors: @escaping @Sendable (AppID) -> (any TaskExecutor)? = { _ in nil },
        retry: RetryPolicy = RetryPolicy(),
        recentOutcomes: RecentOutcomeCache? = nil, revocations: Revocations? = nil, clock: SenderClock = .system,
        logger: Logger
    ) {
        self.provider = provider
        self.routes = routes
        self.executors = executors
        sender = PushSender(
            routes: routes,
            recentOutcomes: recentOutcomes ?? RecentOutcomeCache(lifetime: retry.latestAttempt, clock: clock),
            revocations: revocations, retry: retry, concurrency: Self.concurrency, clock: clock)
        metrics = PushMetrics(provider: provider)
        healthCounters = RouteHealthCounters(clock: clock)
        self.logger = logger
    }

    /// The consumption policy of a sender's queue.
    ///
    /// A batch takes as long as its slowest target, so many batches run concurrently, each with about as many targets
    /// as requests in flight. The prefetch bounds the memory: bulk pushes have hundreds of targets, interactive ones
    /// mostly one. Some batches start without a linger, since they mostly wait for the provider.
    ///
    /// A retried push reaches the horizon at its eighth attempt at the latest, before the runtime's limit of attempts.
    /// Unroutable outcomes are republished without rerunning the handler, which would send the push again.
    @Sendable package func policy(_ queue: WorkQueue) -> StagePolicy {
        guard case .senderPushes(_, let lane, let app) = queue else {
            preconditionFailure("a sender consumes only pushes")
        }
        let isBulk = lane == .bulk
        return StagePolicy(
            batchSize: isBulk ? 4 : 32, batchBytes: Self.concurrency * Self.bytesOfTarget,
            batchLinger: .milliseconds(2), prefetch: isBulk ? 64 : 500, concurrentBatches: 40, eagerBatches: 4,
            unroutableRounds: nil, executor: executors(app))
    }

    package func decode(_ inbound: Inbound) throws(WireError) -> Push {
        let push = try Push.decode(wireBody: inbound.body)
        guard push.provider == provider else {
            throw .invalid(path: "provider", problem: "is not the provider of this sender")
        }
        guard case .senderPushes(_, let lane, let app) = inbound.queue, app == push.app, lane == push.lane else {
            throw .invalid(path: "app", problem: "is not the app of this queue")
        }
        guard (1...Push.maximumTargets).contains(push.targets.count) else {
            throw .invalid(path: "targets", problem: "must be 1 to \(Push.maximumTargets)")
        }
        return push
    }

    /// Some targets of a retried push may be done. Their outcomes are on the way.
    package func collectNotifications(of push: Push, isDone: Bool, into notifications: inout [UUID]) {
        for target in push.targets { notifications.append(target.notification) }
    }

    package func handle(_ batch: [Delivery<Push>]) async throws -> [Verdict] {
        let batches = RouteBatch.byRoute(batch)
        if batches.count == 1 { return try await handle(batches[0]) }
        // Concurrently, so that a slow route does not delay the others.
        return try await withThrowingTaskGroup(of: (indices: [Int], verdicts: [Verdict]).self) { group in
            for batch in batches { group.addTask { (batch.indices, try await handle(batch)) } }
            var verdicts = [Verdict](repeating: .done, count: batch.count)
            for try await finished in group {
                for (index, verdict) in zip(finished.indices, finished.verdicts) { verdicts[index] = verdict }
            }
            return verdicts
        }
    }

    /// Handles the pushes of one route. Returns their verdicts in order.
    private func handle(_ batch: RouteBatch) async throws -> [Verdict] {
        let pushResults = await sender.send(batch)
        let partitioned = pushResults.finished.sortedByPush.partitioned
        metrics.count(partitioned, of: batch.route.app)
        metrics.recordDelays(pushResults, of: batch.pushes)
        log(partitioned.others, of: batch.pushes)
        var outbound = [[Outbound]](repeating: [], count: batch.pushes.count)
        let healthByPush = healthCounters.count(pushResults, on: batch.route)
        for group in OutcomeMessages.messages(partitioned, of: batch.pushes, healthByPush: healthByPush) {
            let message = try Outbound(group.outcomes, to: .outcomes, routingKey: group.routingKey)
            // Most pushes have only this message and share one array.
            let alone = [message]
            for index in group.pushIndices {
                if outbound[index].isEmpty { outbound[index] = alone } else { outbound[index].append(message) }
            }
        }
        if let breaker = routes[batch.route]?.breaker {
            if let spike = breaker.spikeToReport() {
                outbound[0].append(try report(spike, with: batch.pushes[0].message))
            }
        } else {
            for push in batch.pushes { report(unconfigured: push) }
        }
        return try batch.pushes.indices.map { index in
            guard let remaining = pushResults.remaining(of: index) else { return .done(outbound[index]) }
            return Verdict(
                remaining.disposition, outbound: outbound[index],
                remainder: try remainder(of: batch.pushes[index], remaining.targets))
        }
    }

    /// The message that reports a spike of bad tokens on the route of `push`.
    private func report(_ spike: RouteHealth.BadTokenSpike, with push: Push) throws -> Outbound {
        let key = RoutingKey.outcomes(Outcomes.Origin(provider), .misconfigured)
        return try Outbound(healthCounters.message(spike, of: push), to: .outcomes, routingKey: key)
    }

    /// The push with only `targets`, encoded; `nil` if these are all its targets.
    private func remainder(of delivery: Delivery<Push>, _ targets: [Push.Target]) throws -> [UInt8]? {
        guard targets.count < delivery.message.targets.count else { return nil }
        var rest = delivery.message
        rest.targets = targets
        return try rest.wireBody()
    }

    private func report(unconfigured delivery: Delivery<Push>) {
        let push = delivery.message
        logger.info(
            "App has no credentials for this environment; push not sent",
            metadata: delivery.logMetadata.merging([
                "app": "\(push.app)", "environment": "\(push.environment.rawValue)",
                "has_title": "\(push.content.title != nil)", "silent": "\(push.content.silent)",
                "targets": "\(push.targets.count)",
            ]) { $1 })
    }

    /// Logs the targets that no provider accepted, at `debug`. The decision log has them at any level.
    private func log(_ others: TargetOutcomes, of pushes: [Delivery<Push>]) {
        guard logger.logLevel <= .debug else { return }
        for (outcome, index) in zip(others.outcomes, others.pushIndices) {
            var metadata = pushes[index].logMetadata
            metadata["notifications"] = nil
            metadata["notification"] = .string(Hexadecimal.text(of: outcome.notification))
            metadata["device"] = outcome.device.map { .string(Hexadecimal.text(of: $0)) }
            metadata["app"] = .string(pushes[index].message.app.rawValue)
            metadata["reason"] = outcome.answer.reason.map { .string($0) }
            logger.debug("Push to a device ended: \(outcome.answer.disposition.rawValue)", metadata: metadata)
        }
    }
}

extension RemainingTargets {
    /// The disposition of the message. Provider reasons go into the detail only, never into the code.
    fileprivate var disposition: Disposition {
        switch nextStep {
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
    /// The push queues of both lanes of each app, for one provider.
    package static func pushes(_ provider: Provider, of apps: [AppID]) -> [WorkQueue] {
        apps.flatMap { app in Lane.allCases.map { .senderPushes(provider, $0, app) } }
    }
}
