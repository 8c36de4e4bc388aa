import PushProtocol

/// What a piece of evidence comes to while its lane's guard is at rest.
enum Judgement: Hashable, Sendable {
    case approve
    /// Not enough by itself; it counts when more comes.
    case keep
    case quarantine(Doubt)

    /// Why an operator has to look.
    enum Doubt: String, Sendable {
        /// The lane's guard has tripped.
        case storm
        /// The provider took nothing on the lane lately, so it may be the lane that is wrong.
        case laneSilent = "lane-silent"
        /// Nobody knows which environment refused the token.
        case environmentUnknown = "environment-unknown"
    }
}

/// When a suspicion is believed (`push-protocols` C.4): the environment is known, the provider took other tokens on the
/// lane meanwhile, and it was repeated often enough for what its reason is worth.
struct SuspicionRule: Hashable, Sendable {
    /// Reasons that speak of the token and of nothing else. Others may be a payload's fault (`INVALID_ARGUMENT` without a
    /// field), or a push of the wrong kind to a good token (`DeviceTokenNotForTopic`, A.9).
    static let clearReasons: Set<String> = ["BadDeviceToken", "SENDER_ID_MISMATCH", "malformed-token"]

    /// How many distinct notifications must have met a clear reason on a registration.
    var clear: Int
    /// How many must have met another.
    var unclear: Int
    /// How long before the suspicion the lane's last acceptance may lie.
    var healthyWithin: Duration

    init(clear: Int = 1, unclear: Int = 3, healthyWithin: Duration = .seconds(3600)) {
        self.clear = clear
        self.unclear = unclear
        self.healthyWithin = healthyWithin
    }

    /// - Parameter acceptedAt: when the provider last took a push on the lane, as far as is known.
    func judge(_ evidence: Evidence, acceptedAt: Timestamp?) -> Judgement {
        switch evidence.verdict {
        case .gone, .misplaced: return .approve
        case .suspect:
            let needed = Self.clearReasons.contains(evidence.reason) ? clear : unclear
            guard evidence.suspicions >= needed else { return .keep }
            guard evidence.lane.environment != nil else { return .quarantine(.environmentUnknown) }
            guard let acceptedAt, evidence.observedAt - acceptedAt <= healthyWithin else {
                return .quarantine(.laneSilent)
            }
            return .approve
        }
    }
}
