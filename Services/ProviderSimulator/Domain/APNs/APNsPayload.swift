import PushProtocol

/// The payload rules of each push type (ProviderFacts.md §A.5, §A.7).
enum APNsPayload {
    /// The first broken rule as a phrase; `nil` when the payload fits the type.
    static func problem(of payload: [String: JSONValue], for type: APNsPushType) -> String? {
        let aps = payload["aps"]
        if let aps, aps.object == nil { return "aps is not an object" }
        switch type {
        case .alert: return alert(aps)
        case .background: return background(aps)
        case .liveactivity: return liveActivity(aps)
        case .widgets, .controls:
            return aps?["content-changed"] == .bool(true) ? nil : "aps.content-changed is not true"
        case .fileprovider: return fileProvider(payload)
        case .mdm: return mdm(payload)
        case .voip, .complication, .location, .pushtotalk: return nil
        }
    }

    private static func alert(_ aps: JSONValue?) -> String? {
        if aps?["alert"] != nil || aps?["badge"] != nil || aps?["sound"] != nil { return nil }
        return "aps has none of alert, badge and sound"
    }

    private static func background(_ aps: JSONValue?) -> String? {
        guard aps?["content-available"] == .int(1) else { return "aps.content-available is not 1" }
        for member in ["alert", "badge", "sound"] where aps?[member] != nil { return "aps has \(member)" }
        return nil
    }

    private static func liveActivity(_ aps: JSONValue?) -> String? {
        guard aps?["timestamp"]?.int != nil else { return "aps.timestamp is not Unix seconds" }
        switch aps?["event"]?.string {
        case "update": return aps?["content-state"]?.object == nil ? "aps.content-state is not an object" : nil
        case "end": return nil
        case "start": return liveActivityStart(aps)
        default: return "aps.event is not start, update or end"
        }
    }

    private static func liveActivityStart(_ aps: JSONValue?) -> String? {
        if aps?["content-state"]?.object == nil { return "aps.content-state is not an object" }
        if aps?["attributes-type"]?.string == nil { return "aps.attributes-type is not a string" }
        if aps?["attributes"]?.object == nil { return "aps.attributes is not an object" }
        return aps?["alert"] == nil ? "aps.alert is missing; a start needs it" : nil
    }

    private static func fileProvider(_ payload: [String: JSONValue]) -> String? {
        if payload["container-identifier"]?.string == nil { return "container-identifier is not a string" }
        return payload["domain"]?.string == nil ? "domain is not a string" : nil
    }

    private static func mdm(_ payload: [String: JSONValue]) -> String? {
        payload.count == 1 && payload["mdm"]?.string != nil ? nil : "the body is not exactly {\"mdm\": <push magic>}"
    }
}
