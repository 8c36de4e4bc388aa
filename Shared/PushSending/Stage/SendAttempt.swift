import PushProtocol

/// The requests sent to a route at once, and their results.
struct SendAttempt: Sendable {
    let requests: [TargetRequest]
    /// In the order of the requests.
    var results: [SendResult]
    /// The environment of each request that the app's other environment accepted, by index.
    var acceptedIn: [Int: ProviderEnvironment] = [:]
    /// The provider's reason against each rejected FID, by index.
    var refusedFIDs: [Int: String] = [:]
    /// The indices of tokens that are unknown here, without a confirmation by the app's other environment.
    var unconfirmed: Set<Int> = []
    /// Whether the other environment accepts most tokens tried there.
    ///
    /// Then ``unconfirmed`` tokens are in the wrong environment, and no evidence against the route.
    var isLikelyWrongEnvironment = false
    /// The reason of a spike of bad tokens; see ``RouteCircuitBreaker/detectSpike(_:isProbe:)``.
    var spike: String?
    /// The pause of targets with the result ``SendResult/thirdPartyAuthRejected``.
    var thirdPartyPause = Duration.zero

    /// The evidence about the route: the result with the highest weight.
    var observation: CircuitBreaker.Observation {
        if let spike { return .misconfigured(reason: spike) }
        var observation = CircuitBreaker.Observation.nothing
        for result in results {
            let other = result.observation
            if other.weight > observation.weight { observation = other }
        }
        return observation
    }
}

extension SendResult {
    fileprivate var observation: CircuitBreaker.Observation {
        switch self {
        case .settled(.unknown(let reason)): .unavailable(reason: reason)
        case .settled, .throttled, .thirdPartyAuthRejected: .answered
        case .rejectedLocally, .deferred, .withdrawn, .withheld: .nothing
        case .backOff(_, let reason): .unavailable(reason: reason)
        case .unreachable(let reason): .unreachable(reason: reason)
        case .halted(let reason): .misconfigured(reason: reason)
        }
    }
}

extension CircuitBreaker.Observation {
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
