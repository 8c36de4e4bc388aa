import PushProtocol

/// The decision about a piece of evidence while its route's guard is at rest.
enum Evaluation: Hashable, Sendable {
    case approve
    /// Not sufficient alone. Later evidence counts it.
    case keep
    case quarantine(QuarantineReason)

    enum QuarantineReason: String, Sendable {
        /// The route's guard is tripped, or a sender reported a bad-token spike at the time of the rejection.
        case badTokenSpike = "storm"
        /// The provider accepted no push on the route recently, so the route may be at fault.
        case routeSilent = "lane-silent"
        case environmentUnknown = "environment-unknown"
        /// Repeated rejections with a reason that may be the payload's fault.
        case reasonUnclear = "reason-unclear"
    }
}

/// Decides about evidence while the route's guard is at rest (ProviderFacts.md §C.4).
///
/// Approves a suspect rejection if all of these hold:
/// - The reason concerns the token alone, and the environment is known.
/// - The provider accepted other tokens on the route recently, and no sender reported a spike.
/// - Enough distinct notifications were rejected.
///
/// Never approves a reason that may be the payload's fault: feedback cannot see whether the provider accepted the same
/// payload for other tokens. Quarantines it after repeated rejections.
///
/// Approves the end of a FID if the FID was also rejected a day or more before. Firebase's SDK for Apple platforms
/// registers FIDs that FCM knows only minutes later, and FIDs that never become valid (decision 86).
package struct SuspicionRule: Hashable, Sendable {
    /// Reasons that concern the token alone.
    ///
    /// Other reasons may be the payload's fault (`INVALID_ARGUMENT` without a field), or mean a push of the wrong kind
    /// (`DeviceTokenNotForTopic`; ProviderFacts.md §A.9).
    static let clearReasons: Set<String> = ["BadDeviceToken", "SENDER_ID_MISMATCH", "malformed-token"]

    /// The number of distinct notifications with a clear reason that approves a registration's evidence.
    var clear: Int
    /// The number of distinct notifications with another reason that quarantines it.
    var unclear: Int
    /// The maximum time from the route's last acceptance to the rejection.
    var healthyWithin: Duration

    package init(clear: Int = 1, unclear: Int = 3, healthyWithin: Duration = .seconds(3600)) {
        self.clear = clear
        self.unclear = unclear
        self.healthyWithin = healthyWithin
    }

    /// - Parameters:
    ///   - acceptedAt: The provider's last known acceptance on the route.
    ///   - storms: The bad-token spikes that senders reported for the route.
    func evaluate(_ evidence: Evidence, acceptedAt: Timestamp?, reportedSpikes: [RouteHealth.BadTokenSpike])
        -> Evaluation
    {
        switch evidence.verdict {
        case .gone, .misplaced, .fidContradicted: return .approve
        case .fidGone: return evidence.suspicions > 0 ? .approve : .keep
        case .suspect:
            if reportedSpikes.contains(where: { $0.since <= evidence.observedAt && evidence.observedAt <= $0.until }) {
                return .quarantine(.badTokenSpike)
            }
            guard Self.clearReasons.contains(evidence.reason) else {
                return evidence.suspicions >= unclear ? .quarantine(.reasonUnclear) : .keep
            }
            guard evidence.suspicions >= clear else { return .keep }
            guard evidence.route.environment != nil else { return .quarantine(.environmentUnknown) }
            guard let acceptedAt, evidence.observedAt - acceptedAt <= healthyWithin else {
                return .quarantine(.routeSilent)
            }
            return .approve
        }
    }
}
