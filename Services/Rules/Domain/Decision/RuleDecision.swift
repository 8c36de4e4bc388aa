import PushProtocol

/// The decision on one notification to one user.
struct RuleDecision: Hashable, Sendable {
    var answer: Answer
    var reason: Cause

    /// Stored and shown to operators: the names never change.
    enum Answer: Hashable, Sendable {
        case push
        /// Pushed without sound, at the interruption level `passive`.
        case pushQuietly
        /// Decided again at this time.
        case hold(until: Timestamp)
        /// Added to a digest. The digest is decided when it closes.
        case digest
        /// In the inbox, without a push.
        case inbox
        /// Neither pushed nor in the inbox.
        case drop

        /// Whether the inbox can have the notification.
        var isKept: Bool { self != .drop }
    }

    /// The reason: a stable name for operators and metrics.
    enum Cause: String, Hashable, Sendable, CaseIterable {
        case wanted
        case critical
        /// The user does not notice the push, so settings do not apply.
        case notUserVisible = "noiseless"
        case expired
        case switchedOff = "switched-off"
        /// The user has switched pushes off. Banners can be on.
        case channelOff = "channel-off"
        case typeOff = "type-off"
        /// The user has switched the type off for this channel only.
        case typeChannelOff = "type-channel-off"
        case muted
        case present
        case viewing
        case capped
        case quietHours = "quiet-hours"
        /// The hold would exceed the rule's ``Rule/Policy/holdFor``.
        case heldTooLong = "held-too-long"
        /// Quiet hours have held it ``DecisionEngine/mostQuietHolds`` times, for example because the user travelled.
        case heldTooOften = "held-too-often"
        /// ``Cap/criticalCap`` is exhausted.
        case criticalLimit = "critical-storm"
        /// The registry sends it to an audience. Rules do not know the users.
        case audience
        /// A provider sends it to the followers of a topic or channel. Only the provider knows the users.
        case broadcast
        /// The event schedules it for a later time.
        case scheduled
        /// A digest collects it.
        case gathered
        /// A digest with it was sent.
        case summedUp = "summed-up"
        /// The time by which it had to be sent is over.
        case tooLate = "too-late"
        /// A later event has cancelled it.
        case done
        /// A later event about the same item has replaced it.
        case replaced
        /// The user recently got a notification with the same dedupe key.
        case repeated
        /// It exceeds the limits of size or depth of messages.
        case unsendable
        /// The rule file no longer has the rule.
        case ruleGone = "rule-gone"
    }
}

/// The input of a decision on one notification to one user.
struct DecisionInput: Hashable, Sendable {
    var policy: Rule.Policy
    /// Whether the user notices the push: an alert is noticed, a silent push or a badge is not.
    var isUserVisible: Bool
    /// The mute names, the widest first.
    var mutes: [String] = []
    var thread: String?
    var expiresAt: Timestamp?
    /// The first time at which the push was due.
    var since: Timestamp
    /// The number of times that quiet hours have held it.
    var quietHolds = 0
    /// The key that suppresses repeats.
    var dedupe: String?
    /// Whether it is the summary of a digest.
    var isSummary = false
    /// Whether a message can carry it.
    var isSendable = true
}

/// The settings of an app's rule file that apply to all users.
struct AppDefaults: Hashable, Sendable {
    var zone: Zone = .utc
    /// The language of texts that are not translations.
    var language: Language = .english
    var types: [String: PreferenceType] = [:]
    var caps: [String: Cap] = [:]
}
