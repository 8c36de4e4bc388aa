package import FoundationEssentials

/// A notification that an upstream service words itself: the data of an event of the type ``eventType``.
///
/// Rules decide about it like about the notification of a rule file, so users' settings, caps, quiet hours and inboxes
/// apply. The texts are literal: `{{` has no meaning in them.
package struct DirectNotification: Hashable, Sendable {
    /// The type of the CloudEvent. Rule files cannot use it.
    package static let eventType = "heliograph.notification.requested"
    /// The preference type of a notification without ``type``. Every app has it.
    package static let defaultType = "direct"
    /// The maximum number of ``Recipients/users(_:)``.
    package static let maximumUsers = 10_000
    /// The maximum size of ``content`` as JSON, in bytes. APNs and FCM accept no larger push.
    package static let maximumContent = 4096
    /// The maximum of ``ttl``: 400 days.
    package static let maximumTTL = Duration.seconds(400 * 86_400)

    package var recipients: Recipients
    package var content: Content
    /// The name of a preference type of the app's rule file; `nil`: ``defaultType``. Users switch types on and off.
    package var type: String?
    /// `nil`: interactive for users and groups. An audience always uses the bulk lane.
    package var lane: Lane?
    /// The time at which it is decided and sent; `nil`: at once.
    package var at: Date?
    /// The time from which it is no longer sent; `nil`: none, or that of ``ttl``.
    package var expires: Date?
    /// Its lifetime, from ``at`` or else from the arrival of the event; whole seconds.
    package var ttl: Duration?
    /// Whether inboxes have no entry.
    package var isPushOnly: Bool

    package init(
        to recipients: Recipients, content: Content, type: String? = nil, lane: Lane? = nil, at: Date? = nil,
        expires: Date? = nil, ttl: Duration? = nil, isPushOnly: Bool = false
    ) {
        self.recipients = recipients
        self.content = content
        self.type = type
        self.lane = lane
        self.at = at
        self.expires = expires
        self.ttl = ttl
        self.isPushOnly = isPushOnly
    }

    /// The recipients, of exactly one kind.
    package enum Recipients: Hashable, Sendable {
        /// These users, each once.
        case users([UserID])
        /// The present members of a group that the app's rule file maintains; `roles`: only members with one of them.
        case group(String, roles: [String]?)
        /// The users of a topic or a tag. Only the registry knows them, so users' settings do not apply.
        case audience(UserGroup)
        /// All users with a device in the app. Their settings do not apply.
        case everyone
    }

    /// Whether only the registry knows the recipients.
    package var isToAudience: Bool {
        switch recipients {
        case .users, .group: false
        case .audience, .everyone: true
        }
    }

    /// Whether users notice the push: it has a text. Others wake the app, or change only its badge.
    package var isVisible: Bool { content.title != nil || content.body != nil }

    /// Returns the time from which it is no longer sent; `nil`: it has none.
    ///
    /// - Parameter arrival: the arrival of the event, at which ``ttl`` begins without ``at``.
    package func expiry(arrivedAt arrival: Timestamp) -> Timestamp? {
        expires.map(Timestamp.init) ?? ttl.map { (at.map(Timestamp.init) ?? arrival) + $0 }
    }

    package static let testLifetime = Duration.seconds(300)

    /// A harmless push that shows whether pushes reach a user's devices. It is not in the inbox. Without a text, users'
    /// settings do not apply.
    package static func test(to user: UserID, isSilent: Bool = false) -> DirectNotification {
        let content =
            isSilent
            ? Content(data: ["heliograph_test": true], silent: true)
            : Content(title: "Test push", body: "Pushes reach this device.", data: ["heliograph_test": true])
        return DirectNotification(to: .users([user]), content: content, ttl: testLifetime, isPushOnly: true)
    }
}
