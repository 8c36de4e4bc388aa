import FoundationEssentials
import Messaging
import PushProtocol

/// Sends pushes: every target gets an outcome, or is left for later with a reason. Nothing is ever thrown away.
///
/// All targets of all pushes that came together and go the same way are sent together, up to a bound: one crossing of
/// threads serves hundreds of them.
struct PushSender: Sendable {
    private let lanes: PushLanes
    private let settled: SettledTargets
    private let revocations: Revocations?
    private let retry: RetryPolicy
    private let concurrency: Int
    private let clock: SenderClock
    private let otherEnvironment: OtherEnvironment
    private let fallbacks: FallbackTokens

    /// `concurrency` bounds the requests in flight for one lane of one batch.
    init(
        lanes: PushLanes, settled: SettledTargets, revocations: Revocations? = nil, retry: RetryPolicy,
        concurrency: Int, clock: SenderClock
    ) {
        self.lanes = lanes
        self.settled = settled
        self.revocations = revocations
        self.retry = retry
        self.concurrency = concurrency
        self.clock = clock
        otherEnvironment = OtherEnvironment(clock: clock)
        fallbacks = FallbackTokens(revocations: revocations)
    }

    /// A push, and how often and since when it has been tried.
    typealias Job = Delivery<Push>
    /// One target of one job.
    private struct Place {
        var job: Int
        var target: Int
    }

    /// What this attempt at the pushes of `batch` comes to.
    func send(_ batch: LaneBatch) async -> PushSettlements {
        guard let lane = lanes[batch.key] else { return skip(batch.pushes) }
        await settled.begin(batch.pushes)
        let settlements = await send(batch.pushes, over: lane, batch.key)
        settled.remember(settlements, of: batch.pushes)
        settled.end(batch.pushes)
        return settlements
    }

    private func send(_ jobs: [Job], over lane: PushLanes.Lane, _ key: LaneKey) async -> PushSettlements {
        var settlements = PushSettlements(room: jobs.count)
        var unsent: [Place] = []
        unsent.reserveCapacity(jobs.count)
        let now = clock.now()
        // Memory comes before the clock: what was accepted is not expired because its redelivery is late.
        let recollections = settled.outcomes(of: jobs)
        for (index, known) in recollections.enumerated() {
            if let known { settlements.recall(known.outcomes, of: index) }
        }
        let reach = revocations?.reach(now: now)
        for (index, job) in jobs.enumerated() {
            let known = recollections[index]
            let isLate = job.message.expiresAt.map { $0 <= now } ?? false
            let isInDoubt = job.message.delivery == .atMostOnce && job.inbound.redelivered
            let isForgotten = reach.map { job.inbound.publishedAt < $0 } ?? false
            let answer: Outcome.Answer? = isInDoubt ? .unknown(reason: "redelivered") : isLate ? .expired : nil
            if isForgotten, answer == nil { revocations?.reportForgotten(job.message) }
            for target in job.message.targets.indices where known?.isMissing(target) ?? true {
                if let answer {
                    settlements.settle(outcome(job.message.targets[target], answer, now), of: index)
                } else if isForgotten, job.message.targets[target].isOneDevice {
                    let refusal = Outcome.Answer.skipped(reason: Revocations.forgotten)
                    settlements.settle(outcome(job.message.targets[target], refusal, now), of: index)
                } else {
                    unsent.append(Place(job: index, target: target))
                }
            }
        }
        guard !unsent.isEmpty else { return settlements }
        // Rendered even where nothing is left to send: rare, and cheaper than keeping count.
        let renderings = jobs.map { lane.gateway.render($0.message) }
        let patience = lane.gateway.quota?.deadline ?? .zero
        while !unsent.isEmpty, !Task.isCancelled {
            var count: Int
            let admission = await lane.gate.admit()
            switch admission {
            case .closed(let pause, let trouble):
                hold(unsent, of: jobs, for: pause, trouble.reason, into: &settlements)
                return settlements
            case .probe:
                lanes.beginSlowly(key)
                count = 1
            case .open: count = min(unsent.count, concurrency)
            }
            let quota = lane.gateway.quota
            if let quota {
                let deadline = admission == .probe ? quota.probeDeadline : patience
                switch await quota.admit(count, jobs[0].message.lane, until: deadline) {
                case .granted(let granted):
                    // The wait for it may have been a push's last chance.
                    expire(&unsent, of: jobs, into: &settlements)
                    count = min(granted, unsent.count)
                case .later(let pause):
                    if admission == .probe { lane.gate.reportProbe(.nothing) }
                    hold(unsent, of: jobs, for: pause, "the quota is used up", into: &settlements)
                    return settlements
                }
            }
            // Read before the targets are looked up. A later revocation is found when the request gets its stream.
            let generation = revocations?.generation ?? 0
            count = withhold(&unsent, first: count, of: jobs, into: &settlements)
            var probe: UUID?
            count = holdForThirdParty(
                &unsent, first: count, of: jobs, at: lane.gate.thirdParty, &probe, into: &settlements)
            guard count > 0 else {
                if admission == .probe { lane.gate.reportProbe(.nothing) }
                continue
            }
            let copies = unsent.prefix(count).map { place in
                let job = jobs[place.job]
                return Copy(
                    of: place.job, to: job.message.targets[place.target],
                    delivery: job.message.delivery ?? .atLeastOnce, expiresAt: job.message.expiresAt)
            }
            let mayStart = isDue(since: generation)
            let answers = await lane.gateway.send(
                copies, of: renderings, in: jobs[0].message.lane, mayStart: mayStart)
            var round = PushRound(copies: copies, answers: answers)
            // First the other addresses of each target, then the judgement: a token that another environment takes is no
            // evidence against the lane.
            await otherEnvironment.amend(&round, of: key, on: lanes, mayStart: mayStart) { jobs[$0].message }
            await fallbacks.amend(&round, of: key, over: lane, mayStart: mayStart) { jobs[$0].message }
            lane.gate.thirdParty.judge(&round, probe: probe)
            lane.gate.judge(&round, isProbe: admission == .probe)
            if admission == .probe { lane.gate.reportProbe(round.report) } else { lane.gate.report(round.report) }
            quota?.note(round)
            let left = take(round, unsent.prefix(count), of: jobs, into: &settlements)
            unsent.removeFirst(count)
            unsent = left.isEmpty ? unsent : left + unsent
        }
        // Cut short: what is known is kept, and the rest comes again when somebody is there for it.
        hold(unsent, of: jobs, for: .zero, "the sender stops", into: &settlements)
        return settlements
    }

    /// Asks about a copy that gets a stream: its time has not run out, and its user has not lost the device since
    /// `generation`.
    private func isDue(since generation: Int) -> @Sendable (Copy) -> Bool {
        { [revocations, clock] copy in
            if let expiresAt = copy.expiresAt, expiresAt <= clock.now() { return false }
            return revocations.map { !$0.isRevoked(copy.target, since: generation) } ?? true
        }
    }

    /// Answers what is too late by now.
    private func expire(_ unsent: inout [Place], of jobs: [Job], into settlements: inout PushSettlements) {
        let now = clock.now()
        let isLate = jobs.map { job in job.message.expiresAt.map { $0 <= now } ?? false }
        guard isLate.contains(true) else { return }
        for place in unsent where isLate[place.job] {
            settlements.settle(outcome(jobs[place.job].message.targets[place.target], .expired, now), of: place.job)
        }
        unsent.removeAll { isLate[$0.job] }
    }

    /// Answers those of the first `count` that are meant for somebody who has lost the device since.
    ///
    /// - Returns: how many of them are left.
    private func withhold(
        _ unsent: inout [Place], first count: Int, of jobs: [Job], into settlements: inout PushSettlements
    ) -> Int {
        guard let revocations, revocations.generation > 0 else { return count }
        let revoked = revocations.revoked(
            among: unsent.prefix(count).lazy.map { jobs[$0.job].message.targets[$0.target] }, of: jobs[0].message.app)
        let now = clock.now()
        for position in revoked.reversed() {
            let place = unsent.remove(at: position)
            let target = jobs[place.job].message.targets[place.target]
            settlements.settle(outcome(target, .skipped(reason: "revoked"), now), of: place.job)
        }
        return count - revoked.count
    }

    /// Holds those of the first `count` that wait for another party's key. `probe` becomes the device that is let through.
    ///
    /// - Returns: how many of them are left.
    private func holdForThirdParty(
        _ unsent: inout [Place], first count: Int, of jobs: [Job], at gate: ThirdPartyGate, _ probe: inout UUID?,
        into settlements: inout PushSettlements
    ) -> Int {
        guard !gate.isQuiet else { return count }
        var left = count
        for position in (0..<count).reversed() {
            let place = unsent[position]
            let device = jobs[place.job].message.targets[place.target].device
            switch gate.admit(device) {
            case .open: break
            case .probe: probe = device
            case .closed(let pause, let reason):
                hold([place], of: jobs, for: pause, reason, into: &settlements)
                unsent.remove(at: position)
                left -= 1
            }
        }
        return left
    }

    /// The app has no credentials here.
    private func skip(_ jobs: [Job]) -> PushSettlements {
        var settlements = PushSettlements()
        let now = clock.now()
        for (index, job) in jobs.enumerated() {
            for target in job.message.targets {
                settlements.settle(outcome(target, .skipped(reason: "unconfigured"), now), of: index)
            }
        }
        return settlements
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

    /// Sorts the answers of a round into the settlements, and returns the places that are still to be sent.
    private func take(
        _ round: PushRound, _ places: ArraySlice<Place>, of jobs: [Job], into settlements: inout PushSettlements
    ) -> [Place] {
        var left: [Place] = []
        let now = clock.now()
        for (index, place) in places.enumerated() {
            let job = jobs[place.job]
            let target = round.copies[index].target
            switch round.answers[index] {
            case .settled(let answer):
                let elsewhere = round.elsewhere.isEmpty ? nil : round.elsewhere[index]
                let refusedFID = round.refusedFIDs.isEmpty ? nil : round.refusedFIDs[index]
                settlements.settle(
                    outcome(target, answer, now, elsewhere: elsewhere, refusedFID: refusedFID), of: place.job)
            case .refusedHere(let rejection):
                settlements.refuse(outcome(target, rejection.answer, now), of: place.job)
            case .deferred(let reason): hold([place], of: jobs, for: .zero, reason, into: &settlements)
            case .thirdPartyHalted(let reason):
                hold([place], of: jobs, for: round.thirdPartyPause, reason, into: &settlements)
            case .backOff(let floor, let reason):
                switch decide(floor, job, now) {
                case .retry(let level): settlements.leave(target, of: place.job, as: .tried, level, reason)
                case .expired: settlements.settle(outcome(target, .expired, now), of: place.job)
                case .exhausted(let level): settlements.leave(target, of: place.job, as: .exhausted, level, reason)
                }
            case .throttled(let floor, let reason):
                switch decide(floor, job, now) {
                case .retry(let level): settlements.leave(target, of: place.job, as: .tried, level, reason)
                case .expired, .exhausted:
                    settlements.settle(outcome(target, .throttled(reason: reason), now), of: place.job)
                }
            case .halted, .unreachable, .withdrawn: left.append(place)
            case .withheld:
                if let expiresAt = job.message.expiresAt, expiresAt <= now {
                    settlements.settle(outcome(target, .expired, now), of: place.job)
                } else {
                    // Revoked: the look-up before the next round answers it.
                    left.append(place)
                }
            }
        }
        return left
    }

    private func decide(_ floor: Duration, _ job: Job, _ now: Timestamp) -> RetryPolicy.Decision {
        retry.decide(
            floor: floor, attempt: job.inbound.attempt, firstSeen: job.inbound.firstSeen,
            expiresAt: job.message.expiresAt, now: now)
    }

    /// Leaves targets that were kept from being tried for `pause`: that costs them no attempt, and they are expired only
    /// once they are.
    private func hold(
        _ places: [Place], of jobs: [Job], for pause: Duration, _ reason: String,
        into settlements: inout PushSettlements
    ) {
        let now = clock.now()
        for place in places {
            let job = jobs[place.job]
            let level = retry.hold(for: pause, expiresAt: job.message.expiresAt, now: now)
            settlements.leave(job.message.targets[place.target], of: place.job, as: .held, level, reason)
        }
    }
}

extension Outcome.Answer {
    /// Whether the answer may be held against a token.
    fileprivate var mayBeEvidence: Bool {
        switch self {
        case .unregistered, .rejected: true
        case .accepted, .throttled, .misconfigured, .expired, .skipped, .unknown: false
        }
    }
}
