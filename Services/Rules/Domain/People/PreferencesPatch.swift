import PushProtocol

/// The body of `PATCH /v1/preferences`: a merge patch (RFC 7396) of what its owner has chosen.
///
///     {"enabled": true, "channels": {"banner": false}, "types": {"chat": false, "digest": null, "files": {"push": false}},
///      "mutes": {"thread/9": {"until": "2026-03-29T08:00:00Z"}, "thread/4": {"muted": false}},
///      "quiet_hours": {"days": ["fri", "sat"], "start": "22:00", "end": "07:00"}, "digest_time": "08:00",
///      "zone": "Europe/Berlin", "language": "de"}
///
/// Every member is optional. What is null is as if it had never been chosen. Strict: a member that is not known is refused,
/// as a misspelt one would change nothing and say nothing.
struct PreferencesPatch: Sendable {
    /// The largest accepted body, in bytes.
    static let maximumSize = 64 * 1024
    /// RFC 7396 §4.
    static let mediaType = "application/merge-patch+json"
    /// The most mutes that a person has at a time.
    static let mostMutes = 500
    /// The largest settings that are stored for a person, in bytes of their JSON.
    static let maximumStoredSize = 32 * 1024
    /// The longest name of a mute, in UTF-8 bytes.
    static let maximumName = Rule.maximumMute

    private let patch: JSONValue

    init(_ body: [UInt8]) throws(WireError) {
        patch = try WireCoding.decode(JSONValue.self, from: body, maximumSize: Self.maximumSize)
        guard patch.object != nil else { throw .invalid(path: "the body", problem: "expected an object") }
    }

    /// What is chosen after the change. Mutes that are over are left out of it.
    func applied(to settings: PersonalSettings, now: Timestamp) throws(WireError) -> PersonalSettings {
        // Only the names of the patch. Settings that were stored under another limit can still be changed.
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

    /// What is well said and cannot be: a type that the app does not have or that nobody can switch off, a mute that is
    /// over, more mutes than are kept.
    func contradiction(_ defaults: AppDefaults, after settings: PersonalSettings, now: Timestamp) -> WireError? {
        for (name, value) in (patch["types"]?.object ?? [:]).sorted(by: { $0.key < $1.key }) where value != .null {
            guard let type = defaults.types[name] else {
                return .invalid(path: "types.\(name)", problem: Self.unknown(name, defaults))
            }
            if type.isCritical, value == false || value.object?.values.contains(false) == true {
                return .invalid(path: "types.\(name)", problem: "nobody can switch this off; leave it out")
            }
        }
        for (name, mute) in (patch["mutes"]?.object ?? [:]).sorted(by: { $0.key < $1.key }) {
            if let until = mute["until"]?.string.flatMap(RFC3339.date(from:)), Timestamp(until) <= now {
                return .invalid(path: "mutes.\(name).until", problem: "that is over; give a later moment, or null")
            }
        }
        guard settings.mutes.count <= Self.mostMutes else {
            return .invalid(path: "mutes", problem: "at most \(Self.mostMutes) are kept; take some away with null")
        }
        return nil
    }

    /// Why the settings after the change are too large to be stored. A change that makes them smaller is never refused.
    static func excess(before: PersonalSettings, after: PersonalSettings) throws(WireError) -> WireError? {
        let size = try WireCoding.encode(after).count
        guard size > maximumStoredSize, try size >= WireCoding.encode(before).count else { return nil }
        return .invalid(
            path: "the body",
            problem: "all settings together would have \(size) bytes; at most \(maximumStoredSize) are kept; "
                + "take some mutes away with null")
    }

    private static func unknown(_ name: String, _ defaults: AppDefaults) -> String {
        let names = defaults.types.filter { !$0.value.isCritical }.keys.sorted()
        guard !names.isEmpty else { return "the app has no types to switch" }
        let hint = Suggestion.nearest(to: name, in: names).map { "; did you mean “\($0)”?" } ?? ""
        return "there is no such type: there are \(names.joined(separator: ", "))\(hint)"
    }
}
