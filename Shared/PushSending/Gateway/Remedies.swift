import PushProtocol

/// Which remedies one send may still try at once: a pure machine. Whatever needs waiting is an answer instead.
struct Remedies {
    /// What one exchange showed.
    enum Finding: Hashable, Sendable {
        case answered(Consequence)
        case lost(TransportError)
    }

    enum Step: Hashable, Sendable {
        case answer(GatewayAnswer)
        case answerAndLeave(GatewayAnswer)
        case resend
        case resendOnNewConnection
        case resendWithNewCredential
    }

    /// The wait after an answer that got lost, and after a request that could not be placed.
    static let floorAfterLoss = Duration.seconds(10)

    /// How often a request that waited for connections which were replaced meanwhile waits again.
    static let waitsForConnections = 3

    private let delivery: DeliveryPolicy
    private var outdated = 0
    private var resentAfterAmbiguity = false
    private var reauthenticated = false
    private var reconnected = false

    init(delivery: DeliveryPolicy = .atLeastOnce) { self.delivery = delivery }

    mutating func next(after finding: Finding) -> Step {
        switch finding {
        case .answered(let consequence): next(after: consequence)
        case .lost(let error): next(after: error)
        }
    }

    private mutating func next(after consequence: Consequence) -> Step {
        switch consequence {
        case .settle(let answer): return .answer(.settled(answer))
        case .backOff(let floor, let reason): return .answer(.backOff(floor: floor, reason: reason))
        case .throttle(let floor, let reason): return .answer(.throttled(floor: floor, reason: reason))
        // A connection stays bound to what it was opened with: whatever is mended takes effect on another one.
        case .halt(let reason): return .answerAndLeave(.halted(reason: reason))
        case .leave(let floor, let reason): return .answerAndLeave(.backOff(floor: floor, reason: reason))
        case .waitForThirdParty(let reason): return .answer(.thirdPartyHalted(reason: reason))
        case .reauthenticate(let reason):
            guard !reauthenticated else { return .answerAndLeave(.halted(reason: reason)) }
            reauthenticated = true
            return .resendWithNewCredential
        case .reconnect(let reason, let otherwise):
            guard !reconnected else {
                return switch otherwise {
                case .halts: .answerAndLeave(.halted(reason: reason))
                case .backsOff(let floor): .answer(.backOff(floor: floor, reason: reason))
                }
            }
            reconnected = true
            return .resendOnNewConnection
        }
    }

    /// At least once, what may have been processed is sent again, with the same ids, once at once and then later; at most
    /// once, it is over.
    private mutating func next(after error: TransportError) -> Step {
        switch error {
        case .unreachable(let reason): return .answer(.unreachable(reason: reason))
        case .deferred(let reason): return .answer(.deferred(reason: reason))
        case .timedOut where delivery == .atMostOnce: return .answer(.settled(.unknown(reason: "timed-out")))
        case .withdrawn: return .answer(.withdrawn)
        case .withheld: return .answer(.withheld)
        case .outdated:
            guard outdated < Self.waitsForConnections else { return .answer(.deferred(reason: "connections-retired")) }
            outdated += 1
            return .resend
        case .timedOut: return .answer(.backOff(floor: Self.floorAfterLoss, reason: "timed-out"))
        // The transport has sent it again itself, until it gave up.
        case .notProcessed(let reason): return .answer(.backOff(floor: Self.floorAfterLoss, reason: reason))
        case .ambiguous(let reason):
            if delivery == .atMostOnce { return .answer(.settled(.unknown(reason: reason))) }
            guard !resentAfterAmbiguity else {
                return .answer(.backOff(floor: Self.floorAfterLoss, reason: reason))
            }
            resentAfterAmbiguity = true
            return .resend
        }
    }
}
