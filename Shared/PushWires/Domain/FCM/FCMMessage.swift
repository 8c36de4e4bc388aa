import PushProtocol
import PushSending

/// The `message` object of an FCM v1 send, without its target (`push-protocols` B.3).
///
/// A registration token does not tell which platform it is for, so the message carries what Android shows and, under
/// `apns`, what an iPhone needs beyond it.
struct FCMMessage {
    /// Stands for the target's notification id until the message is filled for a target: private-use characters, so that no text
    /// means it.
    static let notificationGap = "\u{E000}notification\u{E000}"

    /// Stand for the time that the push still has until the message is written, likewise.
    private static let ttlGap = "\u{E000}ttl\u{E000}"
    private static let webTTLGap = "\u{E000}TTL\u{E000}"
    /// The header that limits how long a push service keeps a message for a browser (RFC 8030 §5.2).
    private static let webTTL = "TTL"

    let content: Content
    let badge: Int?
    let expiresAt: Timestamp?
    let now: Timestamp

    /// The rendering with the content's own `fcm` message, which must fit FCM's schema, laid over it. A `null` there takes
    /// away what was rendered.
    var rendered: JSONValue {
        get throws(LocalRejection) {
            guard let override = try content.fcm?.message.map(FCMSchema.read) else { return neutral }
            var base = neutral
            // Names of header fields have no case: the content's own is the one that counts.
            let webHeaders = override["webpush"]?["headers"]?.object?.keys
            if webHeaders?.contains(where: { $0 != Self.webTTL && $0.uppercased() == Self.webTTL }) ?? false {
                base = base.merging(["webpush": nil])
            }
            // FCM refuses both together, and whoever writes the newer one means it.
            if let newer = override["android_v2"], newer != .null { base = base.merging(["android": nil]) }
            return FCMSchema.message.dropNulls(of: base.merging(override))
        }
    }

    /// The text of ``rendered``, without the target and its notification's id.
    func template() throws(LocalRejection) -> JSONTemplate {
        let message = try rendered
        try FCMLimits.check(message)
        let left = expiresAt.map { Self.ttl(until: $0, now: now) } ?? 0
        return JSONTemplate(
            message, gap: Self.notificationGap, timed: [Self.ttlGap: "\(left)s", Self.webTTLGap: "\(left)"])
    }

    /// What the content says without its overrides.
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
        // Any token may be a browser's, to which `android.ttl` means nothing.
        message["webpush"] = expiresAt.map { _ in ["headers": [Self.webTTL: .string(Self.webTTLGap)]] }
        return .object(message)
    }

    /// A string map: what is not a string travels as its JSON text.
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
            "ttl": expiresAt.map { _ in .string(Self.ttlGap) },
            // A handful of keys is kept for each token, so one a message would crowd out the app's own.
            "collapse_key": content.silent ? content.collapseKey.map(JSONValue.string) : nil,
            "notification": content.silent ? nil : androidNotification,
        ])
    }

    /// Whole seconds, from none to four weeks.
    static func ttl(until expiresAt: Timestamp, now: Timestamp) -> Int64 {
        Countdown.seconds(until: expiresAt, most: FCMLimits.maximumTTL, now: now)
    }

    private var androidNotification: JSONValue? {
        object([
            "tag": .string(content.collapseKey ?? Self.notificationGap),
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
            "apns-collapse-id": (content.collapseKey ?? (isLiveActivity ? nil : Self.notificationGap))
                .map(JSONValue.string),
            "apns-expiration": expiresAt.map { .string(String($0.seconds)) },
            "apns-priority": content.silent ? "5" : nil,
            "apns-push-type": content.silent ? "background" : nil,
        ])
    }

    /// Whether it is for a Live Activity, whose updates replace each other without a collapse id.
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

    /// The members that are there; `nil` when none is.
    private func object(_ members: [String: JSONValue?]) -> JSONValue? {
        let present = members.compactMapValues { $0 }
        return present.isEmpty ? nil : .object(present)
    }
}

extension InterruptionLevel {
    /// `notification_priority`; the usual one goes without saying.
    var androidPriority: String? {
        switch self {
        case .passive: "PRIORITY_LOW"
        case .active: nil
        case .timeSensitive: "PRIORITY_HIGH"
        case .critical: "PRIORITY_MAX"
        }
    }
}
