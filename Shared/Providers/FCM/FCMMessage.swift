import PushProtocol

/// The `message` object of an FCM v1 request, without its target (Firebase: REST Resource projects.messages).
///
/// A registration token does not reveal its platform, so the message contains Android fields and, under `apns`, those
/// for an iPhone.
struct FCMMessage {
    /// The placeholder for the target's notification id. Private-use characters keep it distinct from text.
    static let notificationIDPlaceholder = "\u{E000}notification\u{E000}"

    /// The placeholders for the remaining lifetime.
    private static let ttlPlaceholder = "\u{E000}ttl\u{E000}"
    private static let webTTLPlaceholder = "\u{E000}TTL\u{E000}"
    /// The header that limits how long a push service stores a Web Push message (RFC 8030 §5.2).
    private static let webTTL = "TTL"

    let content: Content
    let badge: Int?
    let expiresAt: Timestamp?
    let now: Timestamp

    /// The rendering, merged with the content's `fcm` message. A `null` removes a rendered member. Throws for members
    /// outside FCM's schema.
    var rendered: JSONValue {
        get throws(LocalRejection) {
            guard let override = try content.fcm?.message.map(FCMSchema.read) else { return neutral }
            var base = neutral
            // Header names are case-insensitive; the content's header takes precedence.
            let webHeaders = override["webpush"]?["headers"]?.object?.keys
            if webHeaders?.contains(where: { $0 != Self.webTTL && $0.uppercased() == Self.webTTL }) ?? false {
                base = base.merging(["webpush": nil])
            }
            // FCM rejects both together; the content's `android_v2` takes precedence.
            if let newer = override["android_v2"], newer != .null { base = base.merging(["android": nil]) }
            return FCMSchema.message.dropNulls(of: base.merging(override))
        }
    }

    /// The encoded message without target and notification id.
    func template() throws(LocalRejection) -> JSONTemplate {
        let message = try rendered
        try FCMLimits.check(message)
        let left = expiresAt.map { Self.ttl(until: $0, now: now) } ?? 0
        return JSONTemplate(
            message, placeholder: Self.notificationIDPlaceholder,
            timed: [Self.ttlPlaceholder: "\(left)s", Self.webTTLPlaceholder: "\(left)"])
    }

    /// The rendering without overrides.
    private var neutral: JSONValue {
        var message: [String: JSONValue] = [:]
        if let data { message["data"] = .object(data) }
        message["notification"] =
            content.silent
            ? nil
            : object(
                [
                    "title": content.title.map(JSONValue.string), "body": content.body.map(JSONValue.string),
                    "image": content.image.map(JSONValue.string),
                ])
        message["android"] = android
        message["apns"] = apns
        // The token may belong to a browser, which ignores `android.ttl`.
        message["webpush"] = expiresAt.map { _ in ["headers": [Self.webTTL: .string(Self.webTTLPlaceholder)]] }
        return .object(message)
    }

    /// The app's data as a string map. Other values become their JSON text.
    private var data: [String: JSONValue]? {
        var data = content.data ?? [:]
        if let link = content.deepLink { data["deep_link"] = .string(link) }
        return data.isEmpty
            ? nil : data.mapValues { .string($0.string ?? String(decoding: JSONText.bytes(of: $0), as: UTF8.self)) }
    }

    private var android: JSONValue? {
        let isUrgent = !content.silent && content.interruptionLevel != .passive
        return object([
            "priority": .string(isUrgent ? "HIGH" : "NORMAL"),
            "ttl": expiresAt.map { _ in .string(Self.ttlPlaceholder) },
            // FCM stores at most four collapse keys a token, so one for each message would displace the app's own.
            "collapse_key": content.silent ? content.collapseKey.map(JSONValue.string) : nil,
            "notification": content.silent ? nil : androidNotification,
        ])
    }

    /// Whole seconds, from 0 to four weeks.
    static func ttl(until expiresAt: Timestamp, now: Timestamp) -> Int64 {
        TTLCountdown.seconds(until: expiresAt, maximum: FCMLimits.maximumTTL, now: now)
    }

    private var androidNotification: JSONValue? {
        object([
            "tag": .string(content.collapseKey ?? Self.notificationIDPlaceholder),
            // Android shows the notification in the manifest's default channel if the app has no channel with this id.
            "channel_id": content.category.map(JSONValue.string),
            "sound": content.sound.map(JSONValue.string),
            "notification_count": (badge ?? content.badge).flatMap { $0 > 0 ? .int(Int64($0)) : nil },
            "notification_priority": content.interruptionLevel.flatMap(\.androidPriority).map(JSONValue.string),
        ])
    }

    private var apns: JSONValue? {
        object(["headers": apnsHeaders, "payload": aps.map { ["aps": $0] }])
    }

    private var apnsHeaders: JSONValue? {
        object([
            "apns-collapse-id": (content.collapseKey ?? (isLiveActivity ? nil : Self.notificationIDPlaceholder))
                .map(JSONValue.string),
            "apns-expiration": expiresAt.map { .string(String($0.seconds)) },
            "apns-priority": content.silent ? "5" : nil,
            "apns-push-type": content.silent ? "background" : nil,
        ])
    }

    /// Whether the message is for a Live Activity, which needs no collapse id.
    private var isLiveActivity: Bool {
        guard let apns = content.fcm?.message?["apns"] else { return false }
        return apns["live_activity_token"] != nil || apns["liveActivityToken"] != nil
    }

    private var aps: JSONValue? {
        if content.silent { return ["content-available": 1] }
        return object([
            "alert": content.subtitle == nil
                ? nil
                : object([
                    "title": content.title.map(JSONValue.string), "subtitle": content.subtitle.map(JSONValue.string),
                    "body": content.body.map(JSONValue.string),
                ]),
            "badge": (badge ?? content.badge).map { .int(Int64($0)) },
            "sound": content.sound.map(JSONValue.string),
            "category": content.category.map(JSONValue.string),
            "thread-id": content.thread.map(JSONValue.string),
            "interruption-level": content.interruptionLevel.map { .string($0.rawValue) },
            "mutable-content": content.image.map { _ in 1 },
        ])
    }

    /// The members that are not `nil`; `nil` without any.
    private func object(_ members: [String: JSONValue?]) -> JSONValue? {
        let present = members.compactMapValues { $0 }
        return present.isEmpty ? nil : .object(present)
    }
}

extension InterruptionLevel {
    /// The value of `notification_priority`; `nil` for the default.
    var androidPriority: String? {
        switch self {
        case .passive: "PRIORITY_LOW"
        case .active: nil
        case .timeSensitive: "PRIORITY_HIGH"
        case .critical: "PRIORITY_MAX"
        }
    }
}
