import PushProtocol

/// A delivered push as the phone shows it, read from the payload as its platform reads it.
struct ShownNotification: Hashable, Sendable {
    /// Whose look it has: FCM reaches both.
    enum Platform: String, Hashable, Sendable {
        case ios, android
    }

    let platform: Platform
    /// The push type of APNs; `notification` or `data` of FCM.
    var kind: String
    var title: String?
    var subtitle: String?
    var body: String?
    var badge: Int64?
    var sound: String?
    var image: String?
    /// Nothing appears: the app is woken, a widget reloads.
    var isSilent = false
    /// A later notification with the same text replaces this one.
    var collapseID: String?
    /// What it is stacked with: iOS' thread, Android's channel.
    var group: String?
    /// iOS' interruption level; Android's `HIGH` or `NORMAL`.
    var level: String?
    /// The accent that Android gives it, as it was sent.
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
    /// What the app gets besides.
    var data: JSONValue = .object([:])

    /// `nil` for a request whose body is not what its provider takes.
    init?(_ entry: LoggedRequest) {
        guard let payload = try? JSONReader.value(of: entry.request.body) else { return nil }
        receivedAt = entry.request.receivedAt
        switch entry.party {
        case .apns:
            platform = .ios
            kind = entry.request["apns-push-type"] ?? "alert"
            collapseID = entry.request["apns-collapse-id"]
            readAPNs(payload)
        case .fcm:
            guard let message = payload["message"] else { return nil }
            // A message with a block for Apple and none for Android is for an iPhone.
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
            // A localized text is shown as its key: the strings are in the app.
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

    /// A Live Activity's texts may be localized in place.
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
