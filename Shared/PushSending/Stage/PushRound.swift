import PushProtocol

/// One go at some targets of a push: all at once within a bound, and no further one once the lane turns out to be shut.
struct PushRound: Sendable {
    /// The answers of those targets that were sent to, by their place.
    var answers: [Int: GatewayAnswer] = [:]
    /// Where the provider took them, of those targets that it took in another environment than the push is for.
    var elsewhere: [Int: ProviderEnvironment] = [:]

    /// Sends to the targets of `push` at `places`, at most `concurrency` at a time.
    static func run<Gateway: PushGateway>(
        _ places: ArraySlice<Int>, of push: Push, from rendering: Gateway.Rendering, through gateway: Gateway,
        concurrency: Int
    ) async -> PushRound {
        await withTaskGroup(of: (Int, GatewayAnswer).self) { group in
            var round = PushRound()
            var rest = places
            var isOpen = true
            let delivery = push.delivery ?? .atLeastOnce
            func sendNext() {
                guard isOpen, !Task.isCancelled, let place = rest.popFirst() else { return }
                group.addTask {
                    (place, await gateway.send(to: push.targets[place], from: rendering, delivery: delivery))
                }
            }
            for _ in 0..<concurrency { sendNext() }
            while let (place, answer) = await group.next() {
                round.answers[place] = answer
                if answer.shutsLane { isOpen = false }
                sendNext()
            }
            return round
        }
    }

    /// What the answers say about the lane: one that says more about it outweighs the others.
    var report: LaneBreaker.Report {
        answers.values.reduce(.nothing) { report, answer in
            let other = answer.report
            return other.weight > report.weight ? other : report
        }
    }
}

extension GatewayAnswer {
    /// Whether sending on to other targets is pointless.
    fileprivate var shutsLane: Bool {
        switch self {
        case .halted, .unreachable: true
        case .settled, .refusedHere, .backOff, .throttled, .deferred: false
        }
    }

    fileprivate var report: LaneBreaker.Report {
        switch self {
        case .settled(.unknown(let reason)): .unavailable(reason: reason)
        case .settled, .throttled: .answered
        case .refusedHere, .deferred: .nothing
        case .backOff(_, let reason): .unavailable(reason: reason)
        case .unreachable(let reason): .unreachable(reason: reason)
        case .halted(let reason): .misconfigured(reason: reason)
        }
    }
}

extension LaneBreaker.Report {
    fileprivate var weight: Int {
        switch self {
        case .nothing: 0
        case .unavailable: 1
        case .answered: 2
        case .unreachable: 3
        case .misconfigured: 4
        }
    }
}
