import PushProtocol

/// What rules know of one user of one app when they decide.
struct Person: Sendable {
    var settings = PersonalSettings()
    /// Where the app is open now; soft knowledge: without it, a push is sent.
    var leases: [Lease] = []
    /// By cap: when the person was last pushed, ascending, no longer than the cap's limit.
    var capHistory: [String: [Timestamp]] = [:]
    /// What is not said again until then.
    var dedupeUntil: [String: Timestamp] = [:]

    /// The app is open on some device until this is over or renewed.
    struct Lease: Hashable, Sendable {
        /// The thread on the screen, if it is one.
        var viewing: String?
        var expiresAt: Timestamp
    }

    func isPresent(_ now: Timestamp) -> Bool { leases.contains { $0.expiresAt > now } }

    func isViewing(_ thread: String, _ now: Timestamp) -> Bool {
        leases.contains { $0.expiresAt > now && $0.viewing == thread }
    }
}

/// What a user of an app has chosen: sparse, whatever is absent is as the rule file says.
struct PersonalSettings: Hashable, Sendable {
    /// Off: nothing is pushed or shown that is not critical.
    var isOn = true
    /// Those that the person has switched.
    var channels: [Channel: Bool] = [:]
    /// By ``PreferenceType``.
    var types: [String: TypeChoice] = [:]
    /// By what rules give as `mutes`.
    var mutes: [String: Mute] = [:]
    var quietHours: QuietHours?
    /// When digests that are said once a day are wanted; absent: when the rule says.
    var digestTime: LocalTime?
    /// Absent: where the app says its users are.
    var zone: Zone?
    /// Absent: the file's own.
    var language: Language?

    /// A way to reach a person that they can switch off by itself. All are on for whoever has said nothing.
    enum Channel: String, Hashable, Sendable, CaseIterable {
        /// What the devices show.
        case push
        /// What the app shows of what comes while it is open.
        case banner
        /// What is kept for the person to find. Banners are of what comes into it.
        case inbox
    }

    func allows(_ channel: Channel) -> Bool { channels[channel] ?? true }

    /// What a person wants of one thread, family or whatever else rules name.
    struct Mute: Hashable, Sendable {
        /// Muted, or followed although what is around it is muted.
        var isMuted: Bool
        /// From then on it is as if this had never been said; absent: for good.
        var until: Timestamp?
    }
}
