import PushProtocol
import PushSending

/// The body of a device push: `aps` and, beside it, what belongs to the app (`push-protocols` A.7).
enum APNsPayload {
    /// Renders `content` with `badge`, and lays the content's own `apns` payload over it.
    ///
    /// A member that the content does not have is absent, never `null`. A silent push has nothing in `aps` but
    /// `content-available`, whatever else the content says.
    static func render(_ content: Content, badge: Int?) throws(LocalRejection) -> JSONValue {
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

    private static func data(_ content: Content) -> [String: JSONValue]? {
        guard let link = content.deepLink else { return content.data }
        return (content.data ?? [:]).merging(["deep_link": .string(link)]) { $1 }
    }
}

extension APNsPushType {
    /// Holds a finished payload against what this push type demands of `aps`.
    func check(_ payload: JSONValue) throws(LocalRejection) {
        let aps = payload["aps"]
        switch self {
        case .alert:
            guard aps?["alert"] != nil || aps?["badge"] != nil || aps?["sound"] != nil else {
                throw LocalRejection("alert-without-alert-badge-or-sound")
            }
        case .background:
            guard aps?["content-available"] == 1 else { throw LocalRejection("background-without-content-available") }
            guard aps?["alert"] == nil, aps?["badge"] == nil, aps?["sound"] == nil else {
                throw LocalRejection("background-with-alert-badge-or-sound")
            }
        case .liveActivity:
            guard aps?["event"]?.string != "start" || aps?["alert"] != nil else {
                throw LocalRejection("live-activity-start-without-alert")
            }
        case .voip, .complication, .fileProvider, .mdm, .location, .pushToTalk, .widgets, .controls: break
        }
    }
}
