import PushProtocol

/// What a piece of evidence comes to while its lane's guard is at rest.
enum Evaluation: Hashable, Sendable {
    case approve
    /// Not enough by itself; it counts when more comes.
    case keep
    case quarantine(Doubt)

    /// Why an operator has to look.
    enum Doubt: String, Sendable {
        /// The lane's guard has tripped, or a sender doubted the lane when the token was refused.
        case storm
        /// The provider took nothing on the lane lately, so it may be the lane that is wrong.
        case laneSilent = "lane-silent"
        /// Nobody knows which environment refused the token.
        case environmentUnknown = "environment-unknown"
        /// It came again and again, for a reason that may be a payload's fault.
        case reasonUnclear = "reason-unclear"
    }
}

/// When a suspicion is believed (`push-protocols` C.4): its reason speaks of the token alone, the environment is known,
/// the provider took other tokens on the lane meanwhile, no sender doubted the lane, and it was repeated often enough.
///
/// A FID that the provider does not know is believed gone when it was refused a day before too: Apple's Firebase SDK
/// registers FIDs that are unknown for minutes, and others that are none (decision 86).
///
/// A reason that may be a payload's fault is never believed: what would tell it from the token's, that the identical
/// payload was taken by others (B.7), is not known here. When it has come often enough, an operator looks.
struct SuspicionRule: Hashable, Sendable {
    /// Reasons that speak of the token and of nothing else. Others may be a payload's fault (`INVALID_ARGUMENT` without a
    /// field), or a push of the wrong kind to a good token (`DeviceTokenNotForTopic`, A.9).
    static let clearReasons: Set<String> = ["BadDeviceToken", "SENDER_ID_MISMATCH", "malformed-token"]

    /// How many distinct notifications must have met a clear reason on a registration.
    var clear: Int
    /// How many must have met another for an operator to look.
    var unclear: Int
    /// How long before the suspicion the lane's last acceptance may lie.
    var healthyWithin: Duration

    init(clear: Int = 1, unclear: Int = 3, healthyWithin: Duration = .seconds(3600)) {
        self.clear = clear
        self.unclear = unclear
        self.healthyWithin = healthyWithin
    }

    /// - Parameters:
    ///   - acceptedAt: when the provider last took a push on the lane, as far as is known.
    ///   - storms: when senders doubted the lane.
    func evaluate(_ evidence: Evidence, acceptedAt: Timestamp?, storms: [RouteHealth.BadTokenSpike]) -> Evaluation {
        switch evidence.verdict {
        case .gone, .misplaced, .fidContradicted: return .approve
        case .fidGone: return evidence.suspicions > 0 ? .approve : .keep
        case .suspect:
            if storms.contains(where: { $0.since <= evidence.observedAt && evidence.observedAt <= $0.until }) {
                return .quarantine(.storm)
            }
            guard Self.clearReasons.contains(evidence.reason) else {
                return evidence.suspicions >= unclear ? .quarantine(.reasonUnclear) : .keep
            }
            guard evidence.suspicions >= clear else { return .keep }
            guard evidence.lane.environment != nil else { return .quarantine(.environmentUnknown) }
            guard let acceptedAt, evidence.observedAt - acceptedAt <= healthyWithin else {
                return .quarantine(.laneSilent)
            }
            return .approve
        }
    }
}
