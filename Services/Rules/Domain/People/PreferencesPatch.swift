import Primitives
import PushProtocol
import RuleEngine
import RuleLanguage

/// The body of `PATCH /v1/preferences`: a merge patch (RFC 7396) of the caller's preferences.
///
///     {"enabled": true, "channels": {"banner": false}, "types": {"chat": false, "digest": null, "files": {"push": false}},
///      "mutes": {"thread/9": {"until": "2026-03-29T08:00:00Z"}, "thread/4": {"muted": false}},
///      "quiet_hours": {"days": ["fri", "sat"], "start": "22:00", "end": "07:00"}, "digest_time": "08:00",
///      "zone": "Europe/Berlin", "language": "de"}
///
/// Every member is optional. Null removes a choice. Unknown members are rejected, because a misspelt member would
/// otherwise have no effect and no error.
struct PreferencesPatch: Sendable {
    /// The largest accepted body, in bytes.
    static let maximumSize = 64 * 1024
    /// RFC 7396 §4.
    static let mediaType = "application/merge-patch+json"
    static let mostMutes = 500
    /// The maximum size of a user's stored settings, in bytes of JSON.
    static let maximumStoredSize = 32 * 1024
    /// The maximum length of a mute's name, in bytes of UTF-8.
    static let maximumName = Rule.maximumMute

    private let patch: JSONValue

    init(_ body: [UInt8]) throws(WireError) {
        patch = try WireCoding.decode(JSONValue.self, from: body, maximumSize: Self.maximumSize)
        guard patch.object != nil else { throw .invalid(path: "the body", problem: "expected an object") }
    }

    /// Returns the settings after the change, without expired mutes.
    func applied(to settings: PersonalSettings, now: Timestamp) throws(WireError) -> PersonalSettings {
        // Checks only the names in the patch, so that settings stored under another limit can still be changed.
        for (name, mute) in patch["mutes"]?.object ?? [:] where mute != .null {
            guard !name.isEmpty, name.utf8.count <= Self.maximumName, !name.utf8.contains(where: { $0 < 0x20 }) else {
                throw .invalid(
                    path: "mutes", problem: "a name has 1–\(Self.maximumName) bytes of UTF-8 and no controls")
            }
        }
        var settings = try PersonalSettings(settings.json.patched(by: patch))
        settings.mutes = settings.mutes.filter { $0.value.until.map { $0 > now } ?? true }
        return settings
    }

    /// Returns an error for a well-formed patch that is not allowed.
    ///
    /// Reports unknown types, critical types that would be off, expired mutes, and too many mutes.
    func contradiction(_ defaults: AppDefaults, after settings: PersonalSettings, now: Timestamp) -> WireError? {
        for (name, value) in (patch["types"]?.object ?? [:]).sorted(by: { $0.key < $1.key }) where value != .null {
            guard let type = defaults.types[name] else {
                return .invalid(path: "types.\(name)", problem: Self.unknown(name, defaults))
            }
            if type.isCritical, value == false || value.object?.values.contains(false) == true {
                return .invalid(path: "types.\(name)", problem: "a critical type cannot be switched off; leave it out")
            }
        }
        for (name, mute) in (patch["mutes"]?.object ?? [:]).sorted(by: { $0.key < $1.key }) {
            if let until = mute["until"]?.string.flatMap(RFC3339.date(from:)), Timestamp(until) <= now {
                return .invalid(path: "mutes.\(name).until", problem: "the time is past; send a later time, or null")
            }
        }
        guard settings.mutes.count <= Self.mostMutes else {
            return .invalid(path: "mutes", problem: "at most \(Self.mostMutes) are kept; remove some with null")
        }
        return nil
    }

    /// Returns an error if the settings after the change are too large. A change that shrinks them is always allowed.
    static func excess(before: PersonalSettings, after: PersonalSettings) throws(WireError) -> WireError? {
        let size = try WireCoding.encode(after).count
        guard size > maximumStoredSize, try size >= WireCoding.encode(before).count else { return nil }
        return .invalid(
            path: "the body",
            problem: "the settings would have \(size) bytes; at most \(maximumStoredSize) are kept; "
                + "remove some mutes with null")
    }

    private static func unknown(_ name: String, _ defaults: AppDefaults) -> String {
        let names = defaults.types.filter { !$0.value.isCritical }.keys.sorted()
        guard !names.isEmpty else { return "the app has no types that can be switched off" }
        let hint = NearestMatch.of(name, among: names).map { "; did you mean “\($0)”?" } ?? ""
        return "unknown type; the types are \(names.joined(separator: ", "))\(hint)"
    }
}
