import PushProtocol

/// A delivered push as the phone displays it, parsed by the platform's rules.
struct ShownNotification: Hashable, Sendable {
    /// The platform that displays it. FCM reaches both.
    enum Platform: String, Hashable, Sendable {
        case ios, android
    }

    let platform: Platform
    /// The APNs push type, or `notification` or `data` for FCM.
    var kind: String
    var title: String?
    var subtitle: String?
    var body: String?
    var badge: Int64?
    var sound: String?
    var image: String?
    /// Whether nothing is displayed, such as a background push or a widget reload.
    var isSilent = false
    /// A later notification with the same id replaces this one.
    var collapseID: String?
    /// The group it stacks with: the iOS thread or Android channel.
    var group: String?
    /// The iOS interruption level, or Android's `HIGH` or `NORMAL`.
    var level: String?
    /// Android's accent colour, as sent.
    var color: String?
    /// A Live Activity's event and content state.
    var activity: (event: String, state: JSONValue)? {
        get { activityEvent.map { ($0, activityState) } }
        set {
            activityEvent = newValue?.event
            activityState = newValue?.state ?? .null
        }
    }
    private var activityEvent: String?
    private var activityState = JSONValue.null
    let receivedAt: Timestamp
    /// The custom data for the app.
    var data: JSONValue = .object([:])

    /// The collapse ids of the notifications that the app removes when it gets this push: those of a clear command, the
    /// data member `heliograph_clear`. FCM carries the array as JSON text.
    var clearedIDs: [String] {
        guard isSilent else { return [] }
        let member = data["heliograph_clear"] ?? data["data"]?["heliograph_clear"]
        let list = member?.array ?? member?.string.flatMap { try? ProviderJSON.value(of: Array($0.utf8)).array }
        return (list ?? []).compactMap(\.string)
    }

    /// `nil` when the body is not a push.
    init?(_ entry: LoggedRequest) {
        guard let payload = try? ProviderJSON.value(of: entry.request.body) else { return nil }
        receivedAt = entry.request.receivedAt
        switch entry.provider {
        case .apns:
            platform = .ios
            kind = entry.request["apns-push-type"] ?? "alert"
            collapseID = entry.request["apns-collapse-id"]
            readAPNs(payload)
        case .fcm:
            guard let message = payload["message"] else { return nil }
            // A message with an `apns` block and no `android` block is shown as an iPhone.
            platform = message["apns"] != nil && message["android"] == nil ? .ios : .android
            kind = "notification"
            readFCM(message)
        case .oauth: return nil
        }
    }

    private mutating func readAPNs(_ payload: JSONValue) {
        let aps = payload["aps"]
        switch aps?["alert"] {
        case .string(let text): body = text
        case .object(let alert):
            // A localized text is shown as its key, because the strings are in the app.
            title = Self.text(alert["title"]) ?? alert["title-loc-key"]?.string
            subtitle = Self.text(alert["subtitle"]) ?? alert["subtitle-loc-key"]?.string
            body = Self.text(alert["body"]) ?? alert["loc-key"]?.string
        default: break
        }
        badge = aps?["badge"]?.int
        sound = aps?["sound"]?.string ?? aps?["sound"]?["name"]?.string
        group = aps?["thread-id"]?.string
        level = aps?["interruption-level"]?.string
        image = payload["image"]?.string
        if let event = aps?["event"]?.string, kind == "liveactivity" {
            activity = (event, aps?["content-state"] ?? .null)
        }
        isSilent = title == nil && subtitle == nil && body == nil && sound == nil && badge == nil && activity == nil
        data = .object((payload.object ?? [:]).filter { $0.key != "aps" })
    }

    /// The texts of a Live Activity alert may be objects with a `loc-key`.
    private static func text(_ value: JSONValue?) -> String? { value?.string ?? value?["loc-key"]?.string }

    private mutating func readFCM(_ message: JSONValue) {
        let general = message["notification"]
        let android = message["android"]?["notification"]
        func text(_ name: String) -> String? { android?[name]?.string ?? general?[name]?.string }
        func either(_ value: JSONValue?, _ snake: String, _ camel: String) -> JSONValue? {
            value?[snake] ?? value?[camel]
        }
        if platform == .ios, let payload = message["apns"]?["payload"] {
            readAPNs(payload)
            collapseID = message["apns"]?["headers"]?["apns-collapse-id"]?.string
            image = either(message["apns"], "fcm_options", "fcmOptions")?["image"]?.string ?? image
        }
        title = title ?? text("title") ?? either(android, "title_loc_key", "titleLocKey")?.string
        body = body ?? text("body") ?? either(android, "body_loc_key", "bodyLocKey")?.string
        image = image ?? text("image")
        sound = sound ?? android?["sound"]?.string
        badge = badge ?? either(android, "notification_count", "notificationCount")?.int
        collapseID = collapseID ?? android?["tag"]?.string
        group = group ?? either(android, "channel_id", "channelId")?.string
        level = level ?? message["android"]?["priority"]?.string?.uppercased()
        color = android?["color"]?.string
        isSilent = title == nil && body == nil && badge == nil && image == nil
        if isSilent { kind = "data" }
        data = message["data"] ?? data
    }

    func write(to writer: inout JSONWriter) { writer.object { writeMembers(to: &$0) } }

    func writeMembers(to writer: inout JSONWriter) {
        writer.member("kind", kind)
        writer.member("title", title)
        writer.member("subtitle", subtitle)
        writer.member("body", body)
        writer.member("badge", badge)
        writer.member("sound", sound)
        writer.member("image", image)
        writer.name("silent")
        writer.value(.bool(isSilent))
        writer.member("collapseID", collapseID)
        writer.member("group", group)
        writer.member("level", level)
        writer.member("color", color)
        if let activity {
            writer.member("event", activity.event)
            writer.name("state")
            writer.value(activity.state)
        }
        writer.member("receivedAt", receivedAt.milliseconds)
        writer.name("data")
        writer.value(data)
    }
}
