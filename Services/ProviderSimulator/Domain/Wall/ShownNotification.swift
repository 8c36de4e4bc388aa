import PushProtocol

/// A delivered push as the phone displays it, parsed by the platform's rules.
struct ShownNotification: Hashable, Sendable {
    /// The platform that displays it. FCM reaches iOS and Android.
    enum Platform: String, Hashable, Sendable {
        case ios, android, browser
    }

    let platform: Platform
    /// The APNs push type; `notification` or `data` for FCM; `declarative` or `plain` for a browser.
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
    /// The titles of a browser notification's buttons.
    var actions: [String] = []
    /// The page that opens from a browser notification.
    var link: String?
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
        receivedAt = entry.request.receivedAt
        let value = try? ProviderJSON.value(of: entry.content)
        if entry.provider == .webpush {
            platform = .browser
            kind = "plain"
            readWebPush(value, entry.content)
            return
        }
        guard let payload = value else { return nil }
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
        case .webpush, .oauth: return nil
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

    /// A declarative message is shown without the page's code (W3C Push API, "Declarative push message"). A plain one is
    /// passed to the page's service worker, which is assumed to show the usual members, or else the text.
    private mutating func readWebPush(_ message: JSONValue?, _ text: [UInt8]) {
        let notification = message?["notification"] ?? message
        title = notification?["title"]?.string
        body = notification?["body"]?.string
        link = notification?["navigate"]?.string
        if message?["web_push"] == 8030, title?.isEmpty == false, link?.isEmpty == false { kind = "declarative" }
        if title == nil, body == nil, !text.isEmpty { body = String(decoding: text, as: UTF8.self) }
        collapseID = notification?["tag"]?.string
        // Both documented forms: a number beside the notification, or a string in it.
        badge = message?["app_badge"]?.int ?? notification?["app_badge"]?.string.flatMap { Int64($0) }
        image = notification?["image"]?.string
        if notification?["silent"] == true { level = "passive" }
        if notification?["requireInteraction"] == true { level = "critical" }
        actions = (notification?["actions"]?.array ?? []).compactMap { $0["title"]?.string }
        data = notification?["data"] ?? data
        isSilent = title == nil && body == nil
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
        writer.member("link", link)
        if !actions.isEmpty {
            writer.name("actions")
            writer.array(actions) { $0.string($1) }
        }
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
