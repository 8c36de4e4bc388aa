import PushProtocol
import PushSending

/// Whether one push service gets requests of an app. Pure: the caller passes the time.
///
/// A refusal of the app's key (401, 403) halts the push service, an unreachable one pauses, and so does one that asks for
/// it (429, 5xx with or without `Retry-After`). Others of the app go on: clients choose push services (decision 142).
struct OriginState: Sendable {
    enum Permit: Hashable, Sendable {
        case allowed
        /// Send one request, then call ``record(_:isProbe:now:)``.
        case probe
        /// Send nothing for this long.
        case blocked(for: Duration, reason: String)
    }

    private var breaker = CircuitBreaker()
    /// The pause that the push service asked for.
    private var requested: (until: Duration, reason: String)?

    /// Whether the push service is halted or was found unreachable.
    var isOpen: Bool { breaker.openCause != nil }

    /// The rest of the longest pause.
    func pause(now: Duration) -> Duration {
        max(breaker.pause(now: now), requested.map { $0.until - now } ?? .zero, .zero)
    }

    mutating func admit(now: Duration) -> Permit {
        if let requested, now < requested.until {
            return .blocked(for: requested.until - now, reason: requested.reason)
        }
        requested = nil
        switch breaker.admit(now: now) {
        case .allowed: return .allowed
        case .probe: return .probe
        // Another batch probes: ask again with the next delivery.
        case .wait: return .blocked(for: .seconds(5), reason: breaker.openCause?.reason ?? "")
        case .blocked(let pause, let cause): return .blocked(for: pause, reason: cause.reason)
        }
    }

    /// Records the results of requests, with the most serious first: a refused key, no connection, a pause.
    ///
    /// - Returns: The transition of the circuit breaker, for the log.
    mutating func record(_ results: [SendResult], isProbe: Bool, now: Duration) -> CircuitBreaker.Transition? {
        var observation = CircuitBreaker.Observation.nothing
        for result in results {
            switch result {
            case .halted(let reason): observation = .misconfigured(reason: reason)
            case .unreachable(let reason):
                if case .misconfigured = observation { break }
                observation = .unreachable(reason: reason)
            case .backOff(let floor, let reason):
                if (requested?.until ?? .zero) < now + floor { requested = (now + floor, reason) }
                if observation == .nothing { observation = .unavailable(reason: reason) }
            case .settled(.unknown(let reason)):
                if observation == .nothing { observation = .unavailable(reason: reason) }
            case .settled, .throttled, .thirdPartyAuthRejected:
                switch observation {
                case .nothing, .unavailable: observation = .answered
                case .answered, .unreachable, .misconfigured: break
                }
            case .rejectedLocally, .deferred, .withdrawn, .withheld: break
            }
        }
        return isProbe ? breaker.recordProbe(observation, now: now) : breaker.record(observation, now: now)
    }

    /// Ends a halt, for a changed key.
    mutating func endPause(now: Duration) { breaker.endPause(now: now) }
}

extension SendResult {
    /// The result for the app's route, which a push service must not pause.
    ///
    /// - Parameter pause: the time until the push service gets the next request.
    func forRoute(pause: Duration) -> SendResult {
        switch self {
        case .backOff(let floor, let reason): .throttled(floor: max(floor, pause), reason: reason)
        case .unreachable(reason: "address-refused"):
            // The name leads into a network of the operator: no push to it is ever sent.
            .settled(.rejected(reason: "address-refused", suspectToken: true))
        case .unreachable(let reason), .halted(let reason):
            .throttled(floor: max(.seconds(30), pause), reason: reason)
        case .settled, .throttled, .thirdPartyAuthRejected, .rejectedLocally, .deferred, .withdrawn, .withheld: self
        }
    }
}
