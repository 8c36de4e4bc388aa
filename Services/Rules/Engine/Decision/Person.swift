package import PushProtocol
package import RuleLanguage

/// The data about a user of an app that a decision needs.
package struct Person: Sendable {
    package var settings = PersonalSettings()
    /// Where the app is open now. Best effort: without a lease, the push is sent.
    package var leases: [Lease] = []
    /// The times of the user's last pushes by cap, ascending, at most as many as the cap's limit.
    package var capHistory: [String: [Timestamp]] = [:]
    /// By dedupe key: the time until which repeats are suppressed.
    package var dedupeUntil: [String: Timestamp] = [:]

    package init(
        settings: PersonalSettings = PersonalSettings(), leases: [Lease] = [], capHistory: [String: [Timestamp]] = [:],
        dedupeUntil: [String: Timestamp] = [:]
    ) {
        self.settings = settings
        self.leases = leases
        self.capHistory = capHistory
        self.dedupeUntil = dedupeUntil
    }

    /// Presence: the app is open on a device until the lease expires or is renewed.
    package struct Lease: Hashable, Sendable {
        /// The thread on the screen, if any.
        package var viewing: String?
        package var expiresAt: Timestamp

        package init(
            viewing: String? = nil, expiresAt: Timestamp
        ) {
            self.viewing = viewing
            self.expiresAt = expiresAt
        }
    }

    func isPresent(_ now: Timestamp) -> Bool { leases.contains { $0.expiresAt > now } }

    package func isViewing(_ thread: String, _ now: Timestamp) -> Bool {
        leases.contains { $0.expiresAt > now && $0.viewing == thread }
    }
}

/// A user's settings for an app. Where a setting is absent, the rule file's default applies.
package struct PersonalSettings: Hashable, Sendable {
    /// If false, only critical notifications are pushed or shown.
    package var isOn = true
    /// The channels for which the user has made a choice.
    package var channels: [Channel: Bool] = [:]
    /// By the name of a ``PreferenceType``.
    package var types: [String: TypeChoice] = [:]
    /// By mute name (``Rule/Policy/mutes``).
    package var mutes: [String: Mute] = [:]
    package var quietHours: QuietHours?
    /// The local time of daily digests; `nil`: the rule's time.
    package var digestTime: LocalTime?
    /// `nil`: the app's time zone.
    package var zone: Zone?
    /// `nil`: the rule file's language.
    package var language: Language?

    package init(
        isOn: Bool = true, channels: [Channel: Bool] = [:], types: [String: TypeChoice] = [:],
        mutes: [String: Mute] = [:], quietHours: QuietHours? = nil, digestTime: LocalTime? = nil, zone: Zone? = nil,
        language: Language? = nil
    ) {
        self.isOn = isOn
        self.channels = channels
        self.types = types
        self.mutes = mutes
        self.quietHours = quietHours
        self.digestTime = digestTime
        self.zone = zone
        self.language = language
    }

    /// A channel that a user can switch on or off. All are on by default.
    package enum Channel: String, Hashable, Sendable, CaseIterable {
        /// Notifications on the user's devices.
        case push
        /// Banners in the open app, for new inbox items.
        case banner
        /// The list of notifications in the app.
        case inbox
    }

    package func allows(_ channel: Channel) -> Bool { channels[channel] ?? true }

    /// A user's choice for one mute name, such as a thread or a family.
    package struct Mute: Decodable, Hashable, Sendable {
        private enum CodingKeys: String, CodingKey {
            case isMuted = "muted"
            case until
        }

        /// If false, the user follows the name although a wider name is muted.
        package var isMuted: Bool
        /// The end of the choice; `nil`: it has no end.
        package var until: Timestamp?

        package init(
            isMuted: Bool, until: Timestamp? = nil
        ) {
            self.isMuted = isMuted
            self.until = until
        }
    }
}
