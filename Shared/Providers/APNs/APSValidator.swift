import PushProtocol

/// Validates the members of the `aps` dictionary (Apple: Generating a remote notification).
///
/// A device silently ignores a member of the wrong type, so it is rejected here by name. Unknown members pass,
/// because Apple adds some every year.
enum APSValidator {
    /// Checks the type of each known member of `aps`.
    static func check(_ aps: [String: JSONValue], for type: APNsPushType) throws(LocalRejection) {
        for (name, value) in aps {
            guard fits(name, value, type) else { throw LocalRejection("aps-\(name)-invalid") }
        }
    }

    private static func fits(_ name: String, _ value: JSONValue, _ type: APNsPushType) -> Bool {
        switch name {
        case "alert": isAlert(value, type)
        case "badge": value.int.map { $0 >= 0 } ?? false
        case "sound": isSound(value)
        case "thread-id", "category", "target-content-id", "filter-criteria", "attributes-type", "input-push-channel":
            value.string != nil
        case "content-available", "mutable-content", "input-push-token": value == 0 || value == 1
        case "content-changed": value.bool != nil
        case "interruption-level": value.string.flatMap(InterruptionLevel.init) != nil
        case "relevance-score": isRelevance(value, type)
        case "timestamp", "stale-date", "dismissal-date": isUnixSeconds(value)
        case "event": value.string.flatMap(LiveActivityEvent.init) != nil
        case "content-state", "attributes": value.object != nil
        default: true
        }
    }

    private static let alertTexts = [
        "title", "subtitle", "body", "launch-image", "title-loc-key", "subtitle-loc-key", "loc-key", "action-loc-key",
        "sound",
    ]
    private static let alertArguments = ["title-loc-args", "subtitle-loc-args", "loc-args"]

    private static func isAlert(_ value: JSONValue, _ type: APNsPushType) -> Bool {
        guard let alert = value.object else { return value.string != nil }
        let texts = alertTexts.allSatisfy { name in
            guard let text = alert[name] else { return true }
            // A Live Activity's texts may be objects with localization keys.
            return text.string != nil || (type == .liveActivity && text["loc-key"]?.string != nil)
        }
        return texts
            && alertArguments.allSatisfy { name in
                alert[name].map { $0.array?.allSatisfy { $0.string != nil } ?? false } ?? true
            }
    }

    /// A file name, or the object form of a critical alert.
    private static func isSound(_ value: JSONValue) -> Bool {
        guard let sound = value.object else { return value.string != nil }
        let isNamed = sound["name"].map { $0.string != nil } ?? true
        let isMarked = sound["critical"].map { $0 == 0 || $0 == 1 } ?? true
        let isAudible = sound["volume"].map { $0.number.map { (0...1).contains($0) } ?? false } ?? true
        return isNamed && isMarked && isAudible
    }

    /// Any number for Live Activities; 0 to 1 for notifications.
    private static func isRelevance(_ value: JSONValue, _ type: APNsPushType) -> Bool {
        guard let number = value.number else { return false }
        return type == .liveActivity || (0...1).contains(number)
    }

    /// Rejects milliseconds, a frequent mistake. Valid until the year 5138.
    private static func isUnixSeconds(_ value: JSONValue) -> Bool {
        value.number.map { (0..<100_000_000_000).contains($0) } ?? false
    }
}

/// The values of `aps.event`.
enum LiveActivityEvent: String, Sendable {
    case start, update, end
}
