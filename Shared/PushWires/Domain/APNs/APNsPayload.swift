import PushProtocol
import PushSending

/// The body of a device push: `aps` and, beside it, what belongs to the app (`push-protocols` A.7).
enum APNsPayload {
    /// Renders `content` with `badge`, and lays the content's own `apns` payload over it.
    ///
    /// A member that the content does not have is absent, never `null`. A silent push has nothing in `aps` but
    /// `content-available`, whatever else the content says.
    static func render(_ content: Content, badge: Int?) throws(LocalRejection) -> JSONValue {
        // Wherever it stood, somebody on the way would take it for ours.
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
        // A picture is fetched by the app's service extension, which only a mutable notification wakes.
        if content.image != nil { aps["mutable-content"] = 1 }
        return aps
    }

    static func data(_ content: Content) -> [String: JSONValue]? {
        guard let link = content.deepLink else { return content.data }
        return (content.data ?? [:]).merging(["deep_link": .string(link)]) { $1 }
    }
}
