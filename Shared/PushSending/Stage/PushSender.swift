import PushProtocol

/// Sends one push: every target gets an outcome, or is left for later with a reason. Nothing is ever thrown away.
struct PushSender<Gateway: PushGateway>: Sendable {
    private let lanes: PushLanes<Gateway>
    private let settled: SettledTargets
    private let retry: RetryPolicy
    private let concurrency: Int
    private let clock: SenderClock
    private let otherEnvironment: OtherEnvironment

    /// `concurrency` bounds the requests in flight for one push.
    init(
        lanes: PushLanes<Gateway>, settled: SettledTargets, retry: RetryPolicy, concurrency: Int, clock: SenderClock
    ) {
        self.lanes = lanes
        self.settled = settled
        self.retry = retry
        self.concurrency = concurrency
        self.clock = clock
        otherEnvironment = OtherEnvironment(clock: clock)
    }

    /// How often and since when a push has been tried.
    struct History: Sendable {
        var attempt: Int
        var firstSeen: Timestamp
        /// Somebody had it and did not settle it: nobody knows how far that one came.
        var redelivered = false
    }

    func send(_ push: Push, _ history: History) async -> PushSettlement {
        guard let lane = lanes[LaneKey(app: push.app, environment: push.environment)] else {
            return answer(.skipped(reason: "unconfigured"), push)
        }
        if let expiresAt = push.expiresAt, expiresAt <= clock.now() { return answer(.expired, push) }

        var settlement = PushSettlement()
        var todo = recall(push, into: &settlement)
        if push.delivery == .atMostOnce, history.redelivered {
            settlement.outcomes += todo.map { outcome(push.targets[$0], .unknown(reason: "redelivered")) }
            return settlement
        }
        guard !todo.isEmpty else { return settlement }
        let rendering = lane.gateway.render(push)
        while !todo.isEmpty, !Task.isCancelled {
            let count: Int
            let admission = await lane.gate.admit()
            switch admission {
            case .closed(let pause, let trouble):
                hold(todo, of: push, for: pause, trouble.reason, into: &settlement)
                return settlement
            case .probe: count = 1
            case .open: count = todo.count
            }
            var round = await PushRound.run(
                todo.prefix(count), of: push, from: rendering, through: lane.gateway, concurrency: concurrency)
            if admission == .probe { lane.gate.reportProbe(round.report) } else { lane.gate.report(round.report) }
            await otherEnvironment.amend(&round, of: push, on: lanes, concurrency: concurrency)
            todo = take(round, todo, of: push, history, into: &settlement)
        }
        // Cut short: what is known is kept, and the rest comes again when somebody is there for it.
        hold(todo, of: push, for: .zero, "the sender stops", into: &settlement)
        return settlement
    }

    private func answer(_ answer: Outcome.Answer, _ push: Push) -> PushSettlement {
        PushSettlement(outcomes: push.targets.map { outcome($0, answer) })
    }

    private func outcome(
        _ target: Push.Target, _ answer: Outcome.Answer, elsewhere: ProviderEnvironment? = nil
    ) -> Outcome {
        Outcome(
            notification: target.notification, device: target.device, answer: answer, at: clock.now(),
            registeredAt: target.registeredAt, elsewhere: elsewhere)
    }

    /// Answers what was settled before a redelivery, and returns the places of the targets that are still to be sent.
    private func recall(_ push: Push, into settlement: inout PushSettlement) -> ArraySlice<Int> {
        let ids = push.targets.map(\.pushID)
        let known = settled.outcomes(of: ids)
        settlement.outcomes = ids.compactMap { known[$0] }
        return ArraySlice(push.targets.indices.filter { known[ids[$0]] == nil })
    }

    /// Sorts the answers of a round into the settlement, and returns the places that are still to be sent.
    private func take(
        _ round: PushRound, _ todo: ArraySlice<Int>, of push: Push, _ history: History,
        into settlement: inout PushSettlement
    ) -> ArraySlice<Int> {
        var left: [Int] = []
        var finished: [(Push.Target, Outcome)] = []
        for place in todo {
            let target = push.targets[place]
            switch round.answers[place] {
            case .settled(let answer):
                finished.append((target, outcome(target, answer, elsewhere: round.elsewhere[place])))
            case .refusedHere(let rejection): finished.append((target, outcome(target, rejection.answer)))
            case .deferred(let reason): hold([place], of: push, for: .zero, reason, into: &settlement)
            case .backOff(let floor, let reason):
                switch decide(floor, push, history) {
                case .retry(let level): settlement.retry(target, level, reason)
                case .expired: finished.append((target, outcome(target, .expired)))
                case .exhausted(let level): settlement.giveUp(target, level, reason)
                }
            case .throttled(let floor, let reason):
                switch decide(floor, push, history) {
                case .retry(let level): settlement.retry(target, level, reason)
                case .expired, .exhausted: finished.append((target, outcome(target, .throttled(reason: reason))))
                }
            case .halted, .unreachable, nil: left.append(place)
            }
        }
        settlement.outcomes += finished.map(\.1)
        settled.remember(finished.map { (pushID: $0.0.pushID, outcome: $0.1) })
        return left[...]
    }

    private func decide(_ floor: Duration, _ push: Push, _ history: History) -> RetryPolicy.Decision {
        retry.decide(
            floor: floor, attempt: history.attempt, firstSeen: history.firstSeen, expiresAt: push.expiresAt,
            now: clock.now())
    }

    /// Leaves targets that were kept from being tried for `pause`: that costs them no attempt, and they are expired only
    /// once they are.
    private func hold(
        _ places: ArraySlice<Int>, of push: Push, for pause: Duration, _ reason: String,
        into settlement: inout PushSettlement
    ) {
        let level = retry.hold(for: pause, expiresAt: push.expiresAt, now: clock.now())
        for place in places { settlement.hold(push.targets[place], level, reason) }
    }
}
