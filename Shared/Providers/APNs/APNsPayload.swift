import PushProtocol

/// The body of a device push: `aps` and the app's own members (Apple: Generating a remote notification).
enum APNsPayload {
    /// Renders `content` with `badge`, then merges its `apns` payload.
    ///
    /// Members that the content does not have are absent, never `null`. `aps` of a background push contains
    /// `content-available` only.
    static func render(_ content: Content, badge: Int?) throws(LocalRejection) -> JSONValue {
        // A client could read `aps` in `data` as the provider's.
        guard content.data?["aps"] == nil else { throw LocalRejection("data-key-aps-reserved") }
        var payload: [String: JSONValue] = [:]
        let aps = content.silent ? ["content-available": 1] : visible(content, badge: badge)
        if !aps.isEmpty { payload["aps"] = .object(aps) }
        if let data = data(content) { payload["data"] = .object(data) }
        if !content.silent, let image = content.image { payload["image"] = .string(image) }
        guard let override = content.apns?.payload else { return .object(payload) }
        guard case .object(let members) = override, members["aps"].map({ $0.object != nil }) ?? true else {
            throw LocalRejection("apns-payload-not-an-object")
        }
        return JSONValue.object(payload).merging(override)
    }

    private static func visible(_ content: Content, badge: Int?) -> [String: JSONValue] {
        var alert: [String: JSONValue] = [:]
        alert["title"] = content.title.map(JSONValue.string)
        alert["subtitle"] = content.subtitle.map(JSONValue.string)
        alert["body"] = content.body.map(JSONValue.string)

        var aps: [String: JSONValue] = [:]
        if !alert.isEmpty { aps["alert"] = .object(alert) }
        aps["badge"] = (badge ?? content.badge).map { .int(Int64($0)) }
        aps["sound"] = content.sound.map(JSONValue.string)
        aps["category"] = content.category.map(JSONValue.string)
        aps["thread-id"] = content.thread.map(JSONValue.string)
        aps["interruption-level"] = content.interruptionLevel.map { .string($0.rawValue) }
        // A notification service extension downloads the image. Only `mutable-content` starts it.
        if content.image != nil { aps["mutable-content"] = 1 }
        return aps
    }

    static func data(_ content: Content) -> [String: JSONValue]? {
        guard let link = content.deepLink else { return content.data }
        return (content.data ?? [:]).merging(["deep_link": .string(link)]) { $1 }
    }
}
