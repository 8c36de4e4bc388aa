import PushProtocol

/// What becomes of one notification for one user.
struct RuleDecision: Hashable, Sendable {
    var answer: Answer
    var reason: Cause

    /// Stored and shown to operators, so the words stay.
    enum Answer: Hashable, Sendable {
        case push
        /// Pushed without sound, lighting no screen.
        case pushQuietly
        /// Judged again then.
        case hold(until: Timestamp)
        /// Summed up with others; judged when that is.
        case digest
        /// Kept for the person to find, and not pushed.
        case inbox
        /// Neither pushed nor kept, because its rule keeps nothing in the inbox.
        case drop

        /// Whether anything of it is kept for the person.
        var isKept: Bool { self != .drop }
    }

    /// Why: a stable word, for operators and metrics.
    enum Cause: String, Hashable, Sendable, CaseIterable {
        case wanted
        case critical
        /// It makes no noise, so nobody is asked.
        case notUserVisible = "noiseless"
        case expired
        case switchedOff = "switched-off"
        /// The person wants no pushes, and may have banners.
        case channelOff = "channel-off"
        case typeOff = "type-off"
        /// The person wants the type, and not by this way.
        case typeChannelOff = "type-channel-off"
        case muted
        case present
        case viewing
        case capped
        case quietHours = "quiet-hours"
        /// It was held as long as its rule allows.
        case heldTooLong = "held-too-long"
        /// Its quiet hours were still not over, which is what travelling brings, once too often.
        case heldTooOften = "held-too-often"
        /// More critical notifications than can be meant.
        case criticalLimit = "critical-storm"
        /// It is told to all of an audience, whom the registry knows and rules do not.
        case audience
        /// It is told to all who follow something at a provider, which alone knows them.
        case broadcast
        /// It is for a later moment, which the event names.
        case scheduled
        /// It is said with others, in one.
        case gathered
        /// It was said, with others.
        case summedUp = "summed-up"
        /// The moment that it should have been said before was over.
        case tooLate = "too-late"
        /// An event said that it need not be told any more.
        case done
        /// A later event about the same thing has taken its place.
        case replaced
        /// The same was said to this person not long ago.
        case repeated
        /// No message can carry it: it is too large, or nests too deep.
        case unsendable
        /// There is no such rule any more.
        case ruleGone = "rule-gone"
    }
}

/// One notification to one user, about to be judged.
struct DecisionInput: Hashable, Sendable {
    var policy: Rule.Policy
    /// Whether a person would notice it: an alert is noise, a silent push and a badge are not.
    var isUserVisible: Bool
    /// Widest first.
    var mutes: [String] = []
    var thread: String?
    var expiresAt: Timestamp?
    /// When it was to be pushed for the first time.
    var since: Timestamp
    /// How often quiet hours have put it off.
    var quietHolds = 0
    /// What it is said once by, for a while.
    var dedupe: String?
    /// Whether it sums up what was gathered.
    var isSummary = false
    /// Whether a message can carry it.
    var isSendable = true
}

/// What an app's rule file says about everybody.
struct AppDefaults: Hashable, Sendable {
    var zone: Zone = .utc
    /// That of the file's own words.
    var language: Language = .english
    var types: [String: PreferenceType] = [:]
    var caps: [String: Cap] = [:]
}
