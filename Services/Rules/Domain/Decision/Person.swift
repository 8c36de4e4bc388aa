import PushProtocol

/// The data about a user of an app that a decision needs.
struct Person: Sendable {
    var settings = PersonalSettings()
    /// Where the app is open now. Best effort: without a lease, the push is sent.
    var leases: [Lease] = []
    /// The times of the user's last pushes by cap, ascending, at most as many as the cap's limit.
    var capHistory: [String: [Timestamp]] = [:]
    /// By dedupe key: the time until which repeats are suppressed.
    var dedupeUntil: [String: Timestamp] = [:]

    /// Presence: the app is open on a device until the lease expires or is renewed.
    struct Lease: Hashable, Sendable {
        /// The thread on the screen, if any.
        var viewing: String?
        var expiresAt: Timestamp
    }

    func isPresent(_ now: Timestamp) -> Bool { leases.contains { $0.expiresAt > now } }

    func isViewing(_ thread: String, _ now: Timestamp) -> Bool {
        leases.contains { $0.expiresAt > now && $0.viewing == thread }
    }
}

/// A user's settings for an app. Where a setting is absent, the rule file's default applies.
struct PersonalSettings: Hashable, Sendable {
    /// If false, only critical notifications are pushed or shown.
    var isOn = true
    /// The channels for which the user has made a choice.
    var channels: [Channel: Bool] = [:]
    /// By the name of a ``PreferenceType``.
    var types: [String: TypeChoice] = [:]
    /// By mute name (``Rule/Policy/mutes``).
    var mutes: [String: Mute] = [:]
    var quietHours: QuietHours?
    /// The local time of daily digests; `nil`: the rule's time.
    var digestTime: LocalTime?
    /// `nil`: the app's time zone.
    var zone: Zone?
    /// `nil`: the rule file's language.
    var language: Language?

    /// A channel that a user can switch on or off. All are on by default.
    enum Channel: String, Hashable, Sendable, CaseIterable {
        /// Notifications on the user's devices.
        case push
        /// Banners in the open app, for new inbox items.
        case banner
        /// The list of notifications in the app.
        case inbox
    }

    func allows(_ channel: Channel) -> Bool { channels[channel] ?? true }

    /// A user's choice for one mute name, such as a thread or a family.
    struct Mute: Hashable, Sendable {
        /// If false, the user follows the name although a wider name is muted.
        var isMuted: Bool
        /// The end of the choice; `nil`: it has no end.
        var until: Timestamp?
    }
}
