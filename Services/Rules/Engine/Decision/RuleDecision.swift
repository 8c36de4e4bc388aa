package import PushProtocol
package import RuleLanguage

/// The decision on one notification to one user.
package struct RuleDecision: Hashable, Sendable {
    package var answer: Answer
    package var reason: Cause

    package init(
        answer: Answer, reason: Cause
    ) {
        self.answer = answer
        self.reason = reason
    }

    /// Stored and shown to operators: the names never change.
    package enum Answer: Hashable, Sendable {
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
        package var isKept: Bool { self != .drop }
    }

    /// The reason: a stable name for operators and metrics.
    package enum Cause: String, Hashable, Sendable, CaseIterable {
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
        /// The registry finds the users of a segment. The decision about each user follows.
        case segment
        /// No user matches the rule's segment.
        case nobody
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
        /// An operator, or an event under `revoke`, took it back.
        case revoked
        /// A hold-out of the rule file leaves the user out, to measure the effect of the notification.
        case holdOut = "hold-out"
        /// It ends a live surface whose start is revoked.
        case surfaceEnded = "surface-ended"
        /// An event under `replace` sends new texts for a notification that was pushed.
        case replacement
        /// An event under `replace` has changed the texts of a waiting notification or an inbox item.
        case wordsReplaced = "words-replaced"
        /// The user has read, dismissed or removed the notification that the event replaces.
        case alreadyRead = "already-read"
        /// A later event under `replace` was decided before.
        case overtaken
        /// The event names an item without a notification that was sent.
        case nothingToReplace = "nothing-to-replace"
        /// The item has more than ``Replacement/maximumNotifications`` notifications.
        case tooMany = "too-many"
    }
}

/// The input of a decision on one notification to one user.
package struct DecisionInput: Hashable, Sendable {
    package var policy: Rule.Policy
    /// Whether the user notices the push: an alert is noticed, a silent push or a badge is not.
    package var isUserVisible: Bool
    /// The mute names, the widest first.
    package var mutes: [String] = []
    package var thread: String?
    package var expiresAt: Timestamp?
    /// The first time at which the push was due.
    package var since: Timestamp
    /// The number of times that quiet hours have held it.
    package var quietHolds = 0
    /// The key that suppresses repeats.
    package var dedupe: String?
    /// Whether it is the summary of a digest.
    var isSummary = false
    /// Whether a message can carry it.
    var isSendable = true

    package init(
        policy: Rule.Policy, isUserVisible: Bool, mutes: [String] = [], thread: String? = nil,
        expiresAt: Timestamp? = nil, since: Timestamp, quietHolds: Int = 0, dedupe: String? = nil,
        isSummary: Bool = false, isSendable: Bool = true
    ) {
        self.policy = policy
        self.isUserVisible = isUserVisible
        self.mutes = mutes
        self.thread = thread
        self.expiresAt = expiresAt
        self.since = since
        self.quietHolds = quietHolds
        self.dedupe = dedupe
        self.isSummary = isSummary
        self.isSendable = isSendable
    }
}
