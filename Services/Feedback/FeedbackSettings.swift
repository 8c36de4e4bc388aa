import ServiceKit

/// When evidence is believed, and when it is not.
struct FeedbackSettings {
    static let settlingTime = ConfigurationKey(
        "FEEDBACK_SETTLING_TIME", .duration(.zero ... .seconds(3600)), default: "2m",
        summary: "How long evidence waits for more before it is believed; a storm shorter than this harms nobody.")
    static let guardShare = ConfigurationKey(
        "FEEDBACK_GUARD_SHARE", .integer(1...100), default: "5",
        summary: "The percentage of a lane's answers that may be refusals before the guard quarantines.")
    static let guardMinimum = ConfigurationKey(
        "FEEDBACK_GUARD_MINIMUM", .integer(1...1_000_000), default: "20",
        summary: "The fewest distinct refused tokens in two minutes that the guard acts on.")
    static let guardFactor = ConfigurationKey(
        "FEEDBACK_GUARD_FACTOR", .integer(1...100), default: "3",
        summary: "How many times its usual share a lane must exceed for the guard to quarantine.")
    static let guardHold = ConfigurationKey(
        "FEEDBACK_GUARD_HOLD", .duration(.seconds(1) ... .seconds(86_400)), default: "15m",
        summary: "How long the guard goes on quarantining after the last storm.")
    static let suspicions = ConfigurationKey(
        "FEEDBACK_SUSPICIONS", .integer(1...100), default: "1",
        summary: "How many notifications must meet BadDeviceToken or the like before a token is believed bad.")
    static let unclearSuspicions = ConfigurationKey(
        "FEEDBACK_UNCLEAR_SUSPICIONS", .integer(1...100), default: "3",
        summary: "How many must meet a reason that may be a payload's fault before an operator is asked.")
    static let healthyWithin = ConfigurationKey(
        "FEEDBACK_HEALTHY_WITHIN", .duration(.seconds(1) ... .seconds(86_400)), default: "1h",
        summary: "How recently the provider must have taken a push for a suspicion to be about the token.")

    static let evidenceDays = ConfigurationKey(
        "FEEDBACK_EVIDENCE_DAYS", .integer(2...36_500), default: "180",
        summary: "How many days evidence is kept after it was decided about.")

    static let keys: [ConfigurationKey] = [
        settlingTime, guardShare, guardMinimum, guardFactor, guardHold, suspicions, unclearSuspicions, healthyWithin,
        evidenceDays,
    ]

    let settlingTime: Duration
    let guardRule: GuardRule
    let suspicionRule: SuspicionRule
    /// How long evidence is kept after it was decided about.
    let retention: Duration

    init(_ settings: Settings) throws(ConfigurationError) {
        settlingTime = try settings.duration(Self.settlingTime)
        guardRule = GuardRule(
            share: Double(try settings.integer(Self.guardShare)) / 100,
            minimum: try settings.integer(Self.guardMinimum), factor: Double(try settings.integer(Self.guardFactor)),
            hold: try settings.duration(Self.guardHold))
        suspicionRule = SuspicionRule(
            clear: try settings.integer(Self.suspicions), unclear: try settings.integer(Self.unclearSuspicions),
            healthyWithin: try settings.duration(Self.healthyWithin))
        retention = .seconds(86_400 * (try settings.integer(Self.evidenceDays)))
    }
}
