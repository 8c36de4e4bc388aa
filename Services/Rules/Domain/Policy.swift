import PushProtocol

extension Rule {
    /// What stands between what a rule says and the noise that it makes.
    struct Policy: Hashable, Sendable {
        /// The name of a ``PreferenceType`` of the file; without one, only the switch for everything turns it off.
        var type: String?
        /// By what a person can mute it or, with everything around it muted, still follow it; the widest first:
        /// `family/7`, `thread/12`. What renders to nothing is left out.
        var mutes: [Template] = []
        var presence: Presence = .ignored
        /// Names of caps of the file, all of which must allow it and all of which it is charged to.
        var caps: [String] = []
        var overflow: Overflow = .inbox
        var quietHours: QuietHours = .hold
        /// The longest that it is held, for whatever reason, before it is left to the inbox.
        var holdFor = Policy.usualHold
        /// Whether it is kept in the inbox.
        var inbox = true
        /// What it is about. As long as it waits, a later event of the same rule about the same item replaces it, and an
        /// event under `done` takes it back.
        var item: Template?
        var schedule: Schedule?
        var digest: Digest?
        var dedupe: Dedupe?
        /// Whether what became of it is told on the bus.
        var isReported = false

        static let usualHold = Duration.seconds(86_400)

        /// When somebody who is looking is not pushed.
        enum Presence: String, Hashable, Sendable, CaseIterable {
            case ignored
            /// The app is open.
            case app
            /// The app shows the very thread that this is about.
            case thread
        }

        /// What becomes of more than a cap allows.
        enum Overflow: String, Hashable, Sendable, CaseIterable { case inbox, hold, digest }

        /// What becomes of it in quiet hours.
        enum QuietHours: String, Hashable, Sendable, CaseIterable {
            /// It waits for their end.
            case hold
            /// It is delivered without a sound, and lights no screen.
            case silent
            case inbox
            /// It is pushed as ever.
            case bypass
        }

        /// Not twice in this time, to one person, with this key.
        struct Dedupe: Hashable, Sendable {
            var key: Template
            var within: Duration

            static let longest = Duration.seconds(30 * 86_400)
        }

        /// Makes it that of something that cannot wait: what is not told now is told never.
        ///
        /// - Parameter hasWord: whether the rule says itself what becomes of it in quiet hours.
        mutating func becomeMomentary(setsQuietHours hasWord: Bool) {
            inbox = false
            if !hasWord { quietHours = .bypass }
        }

        /// Whether everything of it is summed up, rather than only what is too much.
        var sumsUpAll: Bool { digest != nil && overflow != .digest }
    }
}

/// A kind of notification that people can switch off by itself.
struct PreferenceType: Hashable, Sendable {
    /// What it is, for people who switch it.
    var about = ""
    /// For whoever has said nothing about it.
    var isOn = true
    /// Never switched off, suppressed, capped or held. Said by the rule file alone, never by an event.
    var isCritical = false
}

/// At most so many pushes a person in any stretch of time so long.
struct Cap: Hashable, Sendable {
    var limit: Int
    var window: Duration

    /// So many that no log of one person's pushes grows long.
    static let highestLimit = 100
    /// What critical notifications have instead of the caps of their rules, so that a mistake upstream cannot page a
    /// person ten thousand times (`messaging-and-data` §6.4).
    static let ofCritical = Cap(limit: 20, window: .seconds(3600))
    /// The log that ``ofCritical`` counts in; no cap of a file can have this name.
    static let criticalLog = "!critical"

    /// When the next push is allowed, given when the last ones were; `nil` if it is now.
    func opens(after log: [Timestamp], now: Timestamp) -> Timestamp? {
        guard log.count >= limit else { return nil }
        let opens = log[log.count - limit] + window
        return opens > now ? opens : nil
    }
}
