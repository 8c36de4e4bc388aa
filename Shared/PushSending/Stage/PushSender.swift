import FoundationEssentials
import Messaging
import Providers
import PushProtocol

/// Sends pushes. Every target gets an outcome, or remains for a later attempt with a reason.
///
/// Sends the targets of all pushes of a route concurrently, up to a limit, to save thread switches.
struct PushSender: Sendable {
    private let routes: ProviderRoutes
    private let recentOutcomes: RecentOutcomeCache
    private let revocations: Revocations?
    private let retry: RetryPolicy
    private let concurrency: Int
    private let clock: SenderClock
    private let environmentFallback: EnvironmentFallback
    private let fidFallback: FIDFallback

    /// - Parameter concurrency: the most requests in flight for one batch and route.
    init(
        routes: ProviderRoutes, recentOutcomes: RecentOutcomeCache, revocations: Revocations? = nil,
        retry: RetryPolicy, concurrency: Int, clock: SenderClock
    ) {
        self.routes = routes
        self.recentOutcomes = recentOutcomes
        self.revocations = revocations
        self.retry = retry
        self.concurrency = concurrency
        self.clock = clock
        environmentFallback = EnvironmentFallback(clock: clock)
        fidFallback = FIDFallback(revocations: revocations)
    }

    typealias PushDelivery = Delivery<Push>

    /// A target, by the index of its delivery and its index in the push.
    private struct UnsentTarget {
        var delivery: Int
        var target: Int
    }

    /// Sends the pushes of `batch` once. Answers redelivered targets from the cache.
    func send(_ batch: RouteBatch) async -> PushResults {
        guard let trace = SendTrace(batch) else { return await sendUntraced(batch) }
        let results = await SendTrace.$current.withValue(trace) { await sendUntraced(batch) }
        trace.finish(batch, results)
        return results
    }

    private func sendUntraced(_ batch: RouteBatch) async -> PushResults {
        guard let guarded = routes[batch.route] else { return skip(batch.pushes) }
        await recentOutcomes.markInFlight(batch.pushes)
        let pushResults = await send(batch.pushes, over: guarded, batch.route)
        recentOutcomes.store(pushResults, of: batch.pushes)
        recentOutcomes.clearInFlight(batch.pushes)
        return pushResults
    }

    private func send(
        _ deliveries: [PushDelivery], over guarded: ProviderRoutes.GuardedGateway, _ route: ProviderRoute
    ) async -> PushResults {
        var pushResults = PushResults(capacity: deliveries.count)
        var unsent: [UnsentTarget] = []
        unsent.reserveCapacity(deliveries.count)
        let now = clock.now()
        // Before the expiration: an accepted target stays accepted when its redelivery is late.
        let knownOutcomes = recentOutcomes.outcomes(of: deliveries)
        for (index, known) in knownOutcomes.enumerated() {
            if let known { pushResults.recall(known.outcomes, of: index) }
        }
        let completeSince = revocations?.completeSince(now: now)
        for (index, delivery) in deliveries.enumerated() {
            let known = knownOutcomes[index]
            let isLate = delivery.message.expiresAt.map { $0 <= now } ?? false
            let isInDoubt = delivery.message.delivery == .atMostOnce && delivery.inbound.redelivered
            let isTooOld = completeSince.map { delivery.inbound.publishedAt < $0 } ?? false
            let answer: Outcome.Answer? = isInDoubt ? .unknown(reason: "redelivered") : isLate ? .expired : nil
            if isTooOld, answer == nil { revocations?.logTooOld(delivery) }
            for target in delivery.message.targets.indices where known?.isMissing(target) ?? true {
                if let answer {
                    pushResults.settle(outcome(delivery.message.targets[target], answer, now), of: index)
                } else if isTooOld, delivery.message.targets[target].isOneDevice {
                    let skipped = Outcome.Answer.skipped(reason: Revocations.tooOldReason)
                    pushResults.settle(outcome(delivery.message.targets[target], skipped, now), of: index)
                } else {
                    unsent.append(UnsentTarget(delivery: index, target: target))
                }
            }
        }
        guard !unsent.isEmpty else { return pushResults }
        // Also renders pushes without unsent targets, which are rare.
        let renderings = deliveries.map { guarded.gateway.render($0.message) }
        let quotaDeadline = guarded.gateway.quota?.deadline ?? .zero
        while !unsent.isEmpty, !Task.isCancelled {
            var count: Int
            let permit = await guarded.breaker.admit()
            switch permit {
            case .blocked(let pause, let openCause):
                hold(unsent, of: deliveries, for: pause, openCause.reason, into: &pushResults)
                return pushResults
            case .probe:
                routes.restartRamp(route)
                count = 1
            case .allowed: count = min(unsent.count, concurrency)
            }
            let quota = guarded.gateway.quota
            if let quota {
                let deadline = permit == .probe ? quota.probeDeadline : quotaDeadline
                switch await quota.admit(count, deliveries[0].message.lane, until: deadline) {
                case .granted(let granted):
                    // Pushes may have expired while waiting for the quota.
                    expire(&unsent, of: deliveries, into: &pushResults)
                    count = min(granted, unsent.count)
                case .later(let pause):
                    if permit == .probe { guarded.breaker.recordProbe(.nothing) }
                    hold(unsent, of: deliveries, for: pause, "the quota is exhausted", into: &pushResults)
                    return pushResults
                }
            }
            // Read before the lookup. Later revocations are found when the request gets its stream.
            let generation = revocations?.generation ?? 0
            count = skipRevoked(&unsent, first: count, of: deliveries, into: &pushResults)
            var probe: UUID?
            count = holdForThirdParty(
                &unsent, first: count, of: deliveries, at: guarded.breaker.thirdParty, &probe, into: &pushResults)
            guard count > 0 else {
                if permit == .probe { guarded.breaker.recordProbe(.nothing) }
                continue
            }
            let requests = unsent.prefix(count).map { item in
                let delivery = deliveries[item.delivery]
                return TargetRequest(
                    of: item.delivery, to: delivery.message.targets[item.target],
                    delivery: delivery.message.delivery ?? .atLeastOnce, expiresAt: delivery.message.expiresAt,
                    campaign: delivery.message.campaign)
            }
            let mayStart = isDue(since: generation)
            let results = await guarded.gateway.send(
                requests, of: renderings, in: deliveries[0].message.lane, mayStart: mayStart)
            var attempt = SendAttempt(requests: requests, results: results)
            // Fallbacks first: a token that another environment accepts is no evidence against the route.
            await environmentFallback.retryUnknownTokens(&attempt, of: route, on: routes, mayStart: mayStart) {
                deliveries[$0].message
            }
            await fidFallback.retryRejectedFIDs(&attempt, of: route, over: guarded.gateway, mayStart: mayStart) {
                deliveries[$0].message
            }
            guarded.breaker.thirdParty.update(&attempt, probe: probe)
            guarded.breaker.detectSpike(&attempt, isProbe: permit == .probe)
            if permit == .probe {
                guarded.breaker.recordProbe(attempt.observation)
            } else {
                guarded.breaker.record(attempt.observation)
            }
            quota?.record(attempt)
            let left = apply(attempt, unsent.prefix(count), of: deliveries, to: &pushResults)
            unsent.removeFirst(count)
            unsent = left.isEmpty ? unsent : left + unsent
        }
        // Cancelled: keeps the results so far, and the other targets remain.
        hold(unsent, of: deliveries, for: .zero, "the sender stops", into: &pushResults)
        return pushResults
    }

    /// Checks right before a request gets a stream that its push is neither expired nor revoked since `generation`.
    private func isDue(since generation: Int) -> @Sendable (TargetRequest) -> Bool {
        { [revocations, clock] request in
            if let expiresAt = request.expiresAt, expiresAt <= clock.now() { return false }
            return revocations.map { !$0.isRevoked(request, since: generation) } ?? true
        }
    }

    private func expire(
        _ unsent: inout [UnsentTarget], of deliveries: [PushDelivery], into pushResults: inout PushResults
    ) {
        let now = clock.now()
        let isLate = deliveries.map { delivery in delivery.message.expiresAt.map { $0 <= now } ?? false }
        guard isLate.contains(true) else { return }
        for item in unsent where isLate[item.delivery] {
            let target = deliveries[item.delivery].message.targets[item.target]
            pushResults.settle(outcome(target, .expired, now), of: item.delivery)
        }
        unsent.removeAll { isLate[$0.delivery] }
    }

    /// Finishes the revoked targets among the first `count`.
    ///
    /// - Returns: The number of other targets among them.
    private func skipRevoked(
        _ unsent: inout [UnsentTarget], first count: Int, of deliveries: [PushDelivery],
        into pushResults: inout PushResults
    ) -> Int {
        guard let revocations, revocations.generation > 0 else { return count }
        let revoked = revocations.revoked(
            among: unsent.prefix(count).lazy.map { item in
                let push = deliveries[item.delivery].message
                return (push.targets[item.target], push.campaign)
            },
            of: deliveries[0].message.app)
        let now = clock.now()
        for position in revoked.reversed() {
            let item = unsent.remove(at: position)
            let target = deliveries[item.delivery].message.targets[item.target]
            pushResults.settle(outcome(target, .skipped(reason: "revoked"), now), of: item.delivery)
        }
        return count - revoked.count
    }

    /// Holds the targets among the first `count` that wait for a third party's key. Sets `probe` to the probed device.
    ///
    /// - Returns: The number of other targets among them.
    private func holdForThirdParty(
        _ unsent: inout [UnsentTarget], first count: Int, of deliveries: [PushDelivery],
        at breaker: ThirdPartyAuthBreaker, _ probe: inout UUID?, into pushResults: inout PushResults
    ) -> Int {
        guard !breaker.isEmpty else { return count }
        var left = count
        for position in (0..<count).reversed() {
            let item = unsent[position]
            let device = deliveries[item.delivery].message.targets[item.target].device
            switch breaker.admit(device) {
            case .allowed: break
            case .probe: probe = device
            case .blocked(let pause, let reason):
                hold([item], of: deliveries, for: pause, reason, into: &pushResults)
                unsent.remove(at: position)
                left -= 1
            }
        }
        return left
    }

    /// Finishes all targets: the app has no credentials here.
    private func skip(_ deliveries: [PushDelivery]) -> PushResults {
        var pushResults = PushResults()
        let now = clock.now()
        for (index, delivery) in deliveries.enumerated() {
            for target in delivery.message.targets {
                pushResults.settle(outcome(target, .skipped(reason: "unconfigured"), now), of: index)
            }
        }
        return pushResults
    }

    private func outcome(
        _ target: Push.Target, _ answer: Outcome.Answer, _ now: Timestamp, elsewhere: ProviderEnvironment? = nil,
        refusedFID: String? = nil
    ) -> Outcome {
        Outcome(
            notification: target.notification, device: target.device, answer: answer, at: now,
            registeredAt: target.registeredAt, elsewhere: elsewhere, refusedFID: refusedFID,
            owner: answer.mayBeEvidence ? target.owner : nil)
    }

    /// Adds the results of an attempt to `pushResults`. Returns the targets still to be sent.
    private func apply(
        _ attempt: SendAttempt, _ items: ArraySlice<UnsentTarget>, of deliveries: [PushDelivery],
        to pushResults: inout PushResults
    ) -> [UnsentTarget] {
        var left: [UnsentTarget] = []
        let now = clock.now()
        for (index, item) in items.enumerated() {
            let delivery = deliveries[item.delivery]
            let target = attempt.requests[index].target
            switch attempt.results[index] {
            case .settled(let answer):
                let elsewhere = attempt.acceptedIn.isEmpty ? nil : attempt.acceptedIn[index]
                let refusedFID = attempt.refusedFIDs.isEmpty ? nil : attempt.refusedFIDs[index]
                pushResults.settle(
                    outcome(target, answer, now, elsewhere: elsewhere, refusedFID: refusedFID), of: item.delivery)
            case .rejectedLocally(let rejection):
                pushResults.rejectLocally(outcome(target, rejection.answer, now), of: item.delivery)
            case .deferred(let reason): hold([item], of: deliveries, for: .zero, reason, into: &pushResults)
            case .thirdPartyAuthRejected(let reason):
                hold([item], of: deliveries, for: attempt.thirdPartyPause, reason, into: &pushResults)
            case .backOff(let floor, let reason):
                switch backoff(floor, delivery, now) {
                case .retry(let level): pushResults.addRemaining(target, of: item.delivery, as: .tried, level, reason)
                case .expired: pushResults.settle(outcome(target, .expired, now), of: item.delivery)
                case .exhausted(let level):
                    pushResults.addRemaining(target, of: item.delivery, as: .exhausted, level, reason)
                }
            case .throttled(let floor, let reason):
                switch backoff(floor, delivery, now) {
                case .retry(let level): pushResults.addRemaining(target, of: item.delivery, as: .tried, level, reason)
                case .expired, .exhausted:
                    pushResults.settle(outcome(target, .throttled(reason: reason), now), of: item.delivery)
                }
            case .halted, .unreachable, .withdrawn: left.append(item)
            case .withheld:
                if let expiresAt = delivery.message.expiresAt, expiresAt <= now {
                    pushResults.settle(outcome(target, .expired, now), of: item.delivery)
                } else {
                    // Revoked: the lookup before the next attempt finishes it.
                    left.append(item)
                }
            }
        }
        return left
    }

    private func backoff(
        _ floor: Duration, _ delivery: PushDelivery, _ now: Timestamp
    ) -> RetryPolicy.BackoffDecision {
        retry.backoff(
            floor: floor, attempt: delivery.inbound.attempt, firstSeen: delivery.inbound.firstSeen,
            expiresAt: delivery.message.expiresAt, now: now)
    }

    /// Keeps untried targets for a later attempt, after `pause`. Counts no attempt.
    private func hold(
        _ items: [UnsentTarget], of deliveries: [PushDelivery], for pause: Duration, _ reason: String,
        into pushResults: inout PushResults
    ) {
        let now = clock.now()
        for item in items {
            let delivery = deliveries[item.delivery]
            let level = retry.hold(for: pause, expiresAt: delivery.message.expiresAt, now: now)
            pushResults.addRemaining(
                delivery.message.targets[item.target], of: item.delivery, as: .held, level, reason)
        }
    }
}

extension Outcome.Answer {
    /// Whether the answer may be evidence against a token.
    fileprivate var mayBeEvidence: Bool {
        switch self {
        case .unregistered, .rejected: true
        case .accepted, .throttled, .misconfigured, .expired, .skipped, .unknown: false
        }
    }
}
