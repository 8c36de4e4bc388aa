import PushProtocol

/// One go at a lane: what was sent, and what became of each copy.
struct PushRound: Sendable {
    let copies: [Copy]
    /// In the order of the copies.
    var answers: [GatewayAnswer]
    /// Where the provider took them, of those copies that it took in another environment than the push is for.
    var elsewhere: [Int: ProviderEnvironment] = [:]
    /// The provider's reason against the FID of each copy whose FID it does not know, by place.
    var refusedFIDs: [Int: String] = [:]
    /// The places of the tokens that are unknown here and that the app's other environment said nothing about.
    var unheard: Set<Int> = []
    /// Whether the other environment takes most of the tokens that it is asked about: those of ``unheard`` are then
    /// misplaced rather than evidence against the lane.
    var isMisplaced = false
    /// What speaks against the lane in the answers taken together; see ``LaneGate/judge(_:isProbe:)``.
    var storm: String?
    /// For how long the targets wait whose answer is ``GatewayAnswer/thirdPartyHalted``.
    var thirdPartyPause = Duration.zero

    /// What the answers say about the lane: one that says more about it outweighs the others.
    var report: LaneBreaker.Report {
        if let storm { return .misconfigured(reason: storm) }
        var report = LaneBreaker.Report.nothing
        for answer in answers {
            let other = answer.report
            if other.weight > report.weight { report = other }
        }
        return report
    }
}

extension GatewayAnswer {
    fileprivate var report: LaneBreaker.Report {
        switch self {
        case .settled(.unknown(let reason)): .unavailable(reason: reason)
        case .settled, .throttled, .thirdPartyHalted: .answered
        case .refusedHere, .deferred, .withdrawn, .withheld: .nothing
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
