import FoundationEssentials
import Providers
import PushProtocol
import Synchronization

/// Counts the provider's answers on each route of this process by minute, for ``RouteHealth``.
final class RouteHealthCounters: Sendable {
    private struct MinuteCount {
        var minute: Timestamp
        var answered = 0
        var acceptedAt: Timestamp?

        mutating func take(_ outcome: Outcome) {
            guard outcome.isProviderAnswer else { return }
            answered += 1
            if outcome.isAcceptedAsAddressed { acceptedAt = max(acceptedAt ?? outcome.at, outcome.at) }
        }
    }

    private let sender = UUID()
    private let clock: SenderClock
    private let counts = Mutex<[ProviderRoute: MinuteCount]>([:])

    init(clock: SenderClock) { self.clock = clock }

    /// A message without outcomes that reports a spike on the route of `push`.
    ///
    /// The current batch may have no outcome message to attach it to.
    func message(_ spike: RouteHealth.BadTokenSpike, of push: Push) -> Outcomes {
        var health = health(of: ProviderRoute(of: push))
        health.badTokenSpike = spike
        let id = DerivedID.uuid5(
            push.trace.id, "storm-\(spike.since.milliseconds)-\(spike.until.milliseconds)", ids: [])
        return Outcomes(
            trace: push.trace.next(id: id), app: push.app, origin: Outcomes.Origin(push.provider),
            environment: push.environment, lane: push.lane, routeHealth: health, outcomes: [])
    }

    /// Counts the outcomes of pushes that were sent together on `route`.
    ///
    /// Skips outcomes of earlier attempts, which were counted then. Also skips local rejections: a rule with too large
    /// payloads would hide a spike of bad tokens.
    ///
    /// - Returns: The route's health up to each push, by push index; empty if no outcome is evidence against a token.
    func count(_ pushResults: PushResults, on route: ProviderRoute) -> [Int: RouteHealth] {
        let minute = clock.now().minute
        let settled = pushResults.finished
        var rejectedLocally = pushResults.rejectedLocally
        let isEvidence = !settled.outcomes.allSatisfy(\.isAcceptedAsAddressed)
        return counts.withLock { counts in
            var count = counts[route] ?? MinuteCount(minute: minute)
            if count.minute != minute { (count.minute, count.answered) = (minute, 0) }
            defer { counts[route] = count }
            var healthByPush: [Int: RouteHealth] = [:]
            for index in settled.outcomes.indices {
                let pushIndex = settled.pushIndices[index]
                if pushResults.newIndices.contains(index) {
                    if case .rejected = settled.outcomes[index].answer, let local = rejectedLocally[pushIndex],
                        local > 0
                    {
                        rejectedLocally[pushIndex] = local - 1
                    } else {
                        count.take(settled.outcomes[index])
                    }
                }
                if isEvidence { healthByPush[pushIndex] = health(count) }
            }
            return healthByPush
        }
    }

    private func health(_ count: MinuteCount) -> RouteHealth {
        RouteHealth(sender: sender, minute: count.minute, answered: count.answered, acceptedAt: count.acceptedAt)
    }

    private func health(of route: ProviderRoute) -> RouteHealth {
        let minute = clock.now().minute
        let known = counts.withLock { $0[route] }
        guard let known, known.minute == minute else {
            return health(MinuteCount(minute: minute, acceptedAt: known?.acceptedAt))
        }
        return health(known)
    }
}

extension Outcome {
    /// Whether the provider accepted or rejected the target. Other outcomes say nothing about its token.
    fileprivate var isProviderAnswer: Bool {
        switch answer {
        case .accepted, .unregistered, .rejected: true
        case .throttled, .misconfigured, .expired, .skipped, .unknown: false
        }
    }
}
