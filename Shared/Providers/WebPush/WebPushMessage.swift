import PushProtocol

/// The JSON of a Web Push message: a declarative push message (W3C Push API, "Declarative push message").
///
/// One text serves all browsers. Newer browsers recognise `web_push` and show it without a service worker. In others
/// the service worker passes `notification` to `showNotification()`, whose options have the same names.
struct WebPushMessage {
    /// The placeholder for the target's notification id. Private-use characters keep it distinct from text.
    static let notificationIDPlaceholder = "\u{E000}notification\u{E000}"
    /// Marks a declarative push message.
    private static let marker: Int64 = 8030

    let content: Content
    let badge: Int?
    let site: WebPushSite

    /// The rendering, merged with the override. Throws for a message that some browser would not show.
    var rendered: JSONValue {
        get throws(LocalRejection) {
            // Browsers show a notification of their own for a push without one, and revoke the subscription.
            guard !content.silent else { throw LocalRejection("silent-push-not-for-web-push") }
            guard let override = content.web?.message else { return try Self.checked(neutral) }
            guard override.object != nil else { throw LocalRejection("web-push-message-not-an-object") }
            return try Self.checked(neutral.merging(override))
        }
    }

    /// The encoded message without the notification id.
    func template() throws(LocalRejection) -> JSONTemplate {
        let template = JSONTemplate(try rendered, placeholder: Self.notificationIDPlaceholder)
        guard WebPushEncryption.paddedSize(of: template.count(filledWith: WebPushRendering.idLength)) != nil else {
            throw LocalRejection("payload-too-large")
        }
        return template
    }

    private var neutral: JSONValue {
        var message: [String: JSONValue] = ["web_push": .int(Self.marker)]
        var notification = self.notification
        if let badge = badge ?? content.badge {
            message["app_badge"] = .int(Int64(badge))
            // Safari 18.4 documents it here, as a string. Browsers ignore unknown members.
            notification["app_badge"] = .string(String(badge))
        }
        message["notification"] = .object(notification)
        return .object(message)
    }

    private var notification: [String: JSONValue] {
        // A title is required. The first text that exists becomes it.
        let texts = [content.title, content.subtitle, content.body].compactMap { $0 }.filter { !$0.isEmpty }
        let body = texts.dropFirst().joined(separator: "\n")
        let members: [String: JSONValue?] = [
            "title": texts.first.map(JSONValue.string),
            "body": body.isEmpty ? nil : .string(body),
            "navigate": .string(site.url(for: content.deepLink)),
            "tag": .string(content.collapseKey ?? Self.notificationIDPlaceholder),
            // Without it, a notification that replaces another one makes no sound.
            "renotify": content.collapseKey != nil && !isQuiet ? true : nil,
            "silent": isQuiet ? true : nil,
            "requireInteraction": content.interruptionLevel == .critical ? true : nil,
            "image": content.image.map(JSONValue.string),
            "data": data,
        ]
        return members.compactMapValues { $0 }
    }

    private var isQuiet: Bool { content.interruptionLevel == .passive }

    private var data: JSONValue? {
        var data = content.data ?? [:]
        if let link = content.deepLink { data["deep_link"] = .string(link) }
        return data.isEmpty ? nil : .object(data)
    }

    /// The message without `null` members, and with a URL for each action. Throws if the parser of the W3C Push API or
    /// `showNotification()` would refuse it.
    private static func checked(_ message: JSONValue) throws(LocalRejection) -> JSONValue {
        var message = message.object?.filter { $0.value != .null } ?? [:]
        guard message["web_push"] == .int(marker) else { throw LocalRejection("web-push-marker-changed") }
        guard var notification = message["notification"]?.object?.filter({ $0.value != .null }) else {
            throw LocalRejection("notification-not-an-object")
        }
        guard let title = notification["title"]?.string, !title.isEmpty else {
            throw LocalRejection("notification-without-title")
        }
        guard let target = notification["navigate"]?.string, !target.isEmpty else {
            throw LocalRejection("notification-without-navigate")
        }
        if notification["silent"] == true, notification["vibrate"] != nil {
            throw LocalRejection("notification-silent-and-vibrate")
        }
        if notification["renotify"] == true, notification["tag"]?.string?.isEmpty ?? true {
            throw LocalRejection("notification-renotify-without-tag")
        }
        if let actions = notification["actions"] {
            notification["actions"] = try checked(actions: actions, opening: target)
        }
        message["notification"] = .object(notification)
        return .object(message)
    }

    /// Gives each action without a URL that of the notification, since the declarative form requires one.
    private static func checked(actions: JSONValue, opening url: String) throws(LocalRejection) -> JSONValue {
        guard let list = actions.array else { throw LocalRejection("actions-not-a-list") }
        var checked: [JSONValue] = []
        for action in list {
            guard action["action"]?.string != nil, action["title"]?.string != nil else {
                throw LocalRejection("action-without-action-or-title")
            }
            switch action["navigate"] {
            case nil: checked.append(action.merging(["navigate": .string(url)]))
            case .string?: checked.append(action)
            default: throw LocalRejection("action-navigate-not-a-string")
            }
        }
        return .array(checked)
    }
}
