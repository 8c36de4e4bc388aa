/// A notification's content, independent of the provider. Senders render it for their provider, then merge the `apns`,
/// `fcm` or `web` block into the result.
package struct Content: Codable, Hashable, Sendable {
    package var title: String?
    package var subtitle: String?
    package var body: String?
    /// The number on the app's icon: `0` clears it, absent keeps it. A recipient's badge takes precedence.
    package var badge: Int?
    /// The name of a sound file in the app, or `default`.
    package var sound: String?
    /// The app's registered category, which defines the notification's actions.
    package var category: String?
    /// The grouping key: APNs `thread-id`.
    package var thread: String?
    /// The URL that a tap opens, rendered as the data member `deep_link`.
    package var deepLink: String?
    /// The https URL of an image.
    package var image: String?
    /// The app's custom members, under the key `data` (APNs) or as the string map `data` (FCM).
    package var data: [String: JSONValue]?
    /// A background notification: wakes the app and displays nothing.
    package var silent: Bool
    package var interruptionLevel: InterruptionLevel?
    /// A later notification with the same key replaces this one on screen. At most 64 UTF-8 bytes. Absent: the
    /// notification id, so only a duplicate replaces it.
    package var collapseKey: String?
    package var apns: APNsOverride?
    package var fcm: FCMOverride?
    package var web: WebPushOverride?

    package init(
        title: String? = nil, subtitle: String? = nil, body: String? = nil, badge: Int? = nil, sound: String? = nil,
        category: String? = nil, thread: String? = nil, deepLink: String? = nil, image: String? = nil,
        data: [String: JSONValue]? = nil, silent: Bool = false, interruptionLevel: InterruptionLevel? = nil,
        collapseKey: String? = nil, apns: APNsOverride? = nil, fcm: FCMOverride? = nil,
        web: WebPushOverride? = nil
    ) {
        self.title = title
        self.subtitle = subtitle
        self.body = body
        self.badge = badge
        self.sound = sound
        self.category = category
        self.thread = thread
        self.deepLink = deepLink
        self.image = image
        self.data = data
        self.silent = silent
        self.interruptionLevel = interruptionLevel
        self.collapseKey = collapseKey
        self.apns = apns
        self.fcm = fcm
        self.web = web
    }
}

/// The interruption level: the values of APNs' `interruption-level`.
package enum InterruptionLevel: String, Codable, Hashable, Sendable, CaseIterable {
    case passive
    case active
    case timeSensitive = "time-sensitive"
    case critical
}

/// Overrides for the APNs request.
package struct APNsOverride: Codable, Hashable, Sendable {
    /// `apns-*` headers, such as `apns-priority`. `authorization` and `apns-id` cannot be set.
    package var headers: [String: String]?
    /// Merged into the payload.
    package var payload: JSONValue?
    /// For the start of a Live Activity: the broadcast channel that it follows, by the name of the provider's environment.
    package var channels: [String: ChannelID]?

    package init(headers: [String: String]? = nil, payload: JSONValue? = nil, channels: [String: ChannelID]? = nil) {
        self.headers = headers
        self.payload = payload
        self.channels = channels
    }
}

/// Overrides for FCM's `message` object.
package struct FCMOverride: Codable, Hashable, Sendable {
    /// FCM fields in snake_case or lowerCamelCase, without a target. Merged into the rendered `message`.
    package var message: JSONValue?
    /// A dry run: FCM validates the message and its target and delivers nothing. Absent means `false`.
    package var validateOnly: Bool?

    package init(message: JSONValue? = nil, validateOnly: Bool? = nil) {
        self.message = message
        self.validateOnly = validateOnly
    }
}

/// Overrides for the Web Push request: its urgency, and members of the message.
package struct WebPushOverride: Codable, Hashable, Sendable {
    /// The value of the header `urgency` (RFC 8030 §5.3): whether a phone on battery wakes for the message.
    package enum Urgency: String, Codable, Hashable, Sendable, CaseIterable {
        case veryLow = "very-low"
        case low
        case normal
        case high
    }

    /// Merged into the rendered JSON, such as `{"notification": {"actions": […], "icon": "…"}, "mutable": true}`. A
    /// `null` removes a member of the top level or of `notification`.
    package var message: JSONValue?
    package var urgency: Urgency?

    package init(urgency: Urgency? = nil, message: JSONValue? = nil) {
        self.urgency = urgency
        self.message = message
    }
}
