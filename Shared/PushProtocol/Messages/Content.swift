/// What a notification says, in words that no platform owns. Each sender renders it for its provider; the `apns` and
/// `fcm` blocks are then laid over the rendering verbatim.
package struct Content: Codable, Hashable, Sendable {
    package var title: String?
    package var subtitle: String?
    package var body: String?
    /// The number on the app's icon; `0` clears it, absent leaves it. A recipient's own badge wins over this one.
    package var badge: Int?
    /// The name of a sound file in the app, or `default`.
    package var sound: String?
    /// The app's registered category: which actions the notification offers.
    package var category: String?
    /// What the platform groups by: APNs `thread-id`.
    package var thread: String?
    /// Where a tap leads; rendered as the data member `deep_link`.
    package var deepLink: String?
    /// An https URL of a picture.
    package var image: String?
    /// The app's own members, delivered under the key `data` (APNs) or as the string map `data` (FCM).
    package var data: [String: JSONValue]?
    /// Wakes the app and shows nothing.
    package var silent: Bool
    package var interruptionLevel: InterruptionLevel?
    /// What the person perceives as one thing: a later notification with the same key replaces the earlier one on
    /// screen. At most 64 UTF-8 bytes. Absent: the notification id, so that only repeats of itself are replaced.
    package var collapseKey: String?
    package var apns: APNsOverride?
    package var fcm: FCMOverride?

    package init(
        title: String? = nil, subtitle: String? = nil, body: String? = nil, badge: Int? = nil, sound: String? = nil,
        category: String? = nil, thread: String? = nil, deepLink: String? = nil, image: String? = nil,
        data: [String: JSONValue]? = nil, silent: Bool = false, interruptionLevel: InterruptionLevel? = nil,
        collapseKey: String? = nil, apns: APNsOverride? = nil, fcm: FCMOverride? = nil
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
    }
}

/// How loudly a notification may interrupt: the values of APNs' `interruption-level`.
package enum InterruptionLevel: String, Codable, Hashable, Sendable, CaseIterable {
    case passive
    case active
    case timeSensitive = "time-sensitive"
    case critical
}

/// Laid verbatim over what the APNs sender rendered.
package struct APNsOverride: Codable, Hashable, Sendable {
    /// `apns-*` request headers, such as `apns-priority`. `authorization` and `apns-id` cannot be set here.
    package var headers: [String: String]?
    /// Merged into the payload, object by object.
    package var payload: JSONValue?

    package init(headers: [String: String]? = nil, payload: JSONValue? = nil) {
        self.headers = headers
        self.payload = payload
    }
}

/// Laid verbatim over the `message` object that the FCM sender rendered, object by object.
package struct FCMOverride: Codable, Hashable, Sendable {
    /// In FCM's own field names, snake_case or lowerCamelCase; never a target.
    package var message: JSONValue?
    /// A dry run: FCM checks the message and its target and delivers nothing. Absent means `false`.
    package var validateOnly: Bool?

    package init(message: JSONValue? = nil, validateOnly: Bool? = nil) {
        self.message = message
        self.validateOnly = validateOnly
    }
}
