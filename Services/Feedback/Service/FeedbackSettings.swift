import FeedbackStore
import ServiceKit

/// The settings of evidence evaluation.
struct FeedbackSettings {
    static let settlingTime = ConfigurationKey(
        "FEEDBACK_SETTLING_TIME", .duration(.zero ... .seconds(3600)), default: "2m",
        summary: "How long evidence waits before its evaluation, so that a bad-token spike is detected first.")
    static let guardShare = ConfigurationKey(
        "FEEDBACK_GUARD_SHARE", .integer(1...100), default: "5",
        summary: "The percentage of rejections among a route's answers above which its guard trips.")
    static let guardMinimum = ConfigurationKey(
        "FEEDBACK_GUARD_MINIMUM", .integer(1...1_000_000), default: "20",
        summary: "The minimum number of users with rejected tokens in two minutes for the guard to trip.")
    static let guardFactor = ConfigurationKey(
        "FEEDBACK_GUARD_FACTOR", .integer(1...100), default: "3",
        summary: "How many times a route's normal share of rejections must be exceeded for its guard to trip.")
    static let guardHold = ConfigurationKey(
        "FEEDBACK_GUARD_HOLD", .duration(.seconds(1) ... .seconds(86_400)), default: "15m",
        summary: "How long a guard stays tripped after the last bad-token spike.")
    static let suspicions = ConfigurationKey(
        "FEEDBACK_SUSPICIONS", .integer(1...100), default: "1",
        summary: "How many notifications must be rejected with BadDeviceToken or the like to deactivate a token.")
    static let unclearSuspicions = ConfigurationKey(
        "FEEDBACK_UNCLEAR_SUSPICIONS", .integer(1...100), default: "3",
        summary: "How many must be rejected with a reason that may be the payload's fault to quarantine a token.")
    static let healthyWithin = ConfigurationKey(
        "FEEDBACK_HEALTHY_WITHIN", .duration(.seconds(1) ... .seconds(86_400)), default: "1h",
        summary: "How recently the provider must have accepted a push on the route to blame a rejected token.")

    static let evidenceDays = ConfigurationKey(
        "FEEDBACK_EVIDENCE_DAYS", .integer(2...36_500), default: "180",
        summary: "How many days evidence is kept after its decision.")

    static let keys: [ConfigurationKey] = [
        settlingTime, guardShare, guardMinimum, guardFactor, guardHold, suspicions, unclearSuspicions, healthyWithin,
        evidenceDays,
    ]

    let settlingTime: Duration
    let guardRule: GuardRule
    let suspicionRule: SuspicionRule
    /// The retention of evidence after its decision.
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
