import PushProtocol

/// A delivered push as the phone shows it, read from the payload as its platform reads it.
struct ShownNotification: Hashable, Sendable {
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
    var receivedAt: Timestamp
    /// What the app gets besides.
    var data: JSONValue = .object([:])

    /// `nil` for a request whose body is not what its provider takes.
    init?(_ entry: LoggedRequest) {
        guard let payload = try? JSONReader.value(of: entry.request.body) else { return nil }
        receivedAt = entry.request.receivedAt
        switch entry.party {
        case .apns:
            collapseID = entry.request["apns-collapse-id"]
            readAPNs(payload)
        case .fcm:
            guard let message = payload["message"] else { return nil }
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
            title = alert["title"]?.string ?? alert["title-loc-key"]?.string
            subtitle = alert["subtitle"]?.string ?? alert["subtitle-loc-key"]?.string
            body = alert["body"]?.string ?? alert["loc-key"]?.string
        default: break
        }
        badge = aps?["badge"]?.int
        sound = aps?["sound"]?.string ?? aps?["sound"]?["name"]?.string
        isSilent = title == nil && subtitle == nil && body == nil && sound == nil && badge == nil
        data = .object((payload.object ?? [:]).filter { $0.key != "aps" })
    }

    private mutating func readFCM(_ message: JSONValue) {
        let general = message["notification"]
        let android = message["android"]?["notification"]
        func text(_ name: String) -> String? { android?[name]?.string ?? general?[name]?.string }
        title = text("title") ?? android?["title_loc_key"]?.string ?? android?["titleLocKey"]?.string
        body = text("body") ?? android?["body_loc_key"]?.string ?? android?["bodyLocKey"]?.string
        image = text("image")
        sound = android?["sound"]?.string
        badge = (android?["notification_count"] ?? android?["notificationCount"])?.int
        collapseID = android?["tag"]?.string
        isSilent = general == nil && android == nil
        data = message["data"] ?? .object([:])
    }

    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("title", title)
            writer.member("subtitle", subtitle)
            writer.member("body", body)
            writer.member("badge", badge)
            writer.member("sound", sound)
            writer.member("image", image)
            writer.name("silent")
            writer.value(.bool(isSilent))
            writer.member("collapseID", collapseID)
            writer.member("receivedAt", receivedAt.milliseconds)
            writer.name("data")
            writer.value(data)
        }
    }
}
