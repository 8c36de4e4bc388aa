package import PushProtocol
import RuleLanguage

// The stored JSON: snake_case, with only the members that the user has set.

extension PersonalSettings: Codable {
    private enum CodingKeys: String, CodingKey {
        case isOn = "enabled"
        case channels
        case types
        case mutes
        case quietHours = "quiet_hours"
        case zone
        case language
        case digestTime = "digest_time"
    }

    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        isOn = try values.decodeIfPresent(Bool.self, forKey: .isOn) ?? true
        channels = .init(named: try values.decodeIfPresent([String: Bool].self, forKey: .channels) ?? [:])
        types = try values.decodeIfPresent([String: TypeChoice].self, forKey: .types) ?? [:]
        mutes = try values.decodeIfPresent([String: Mute].self, forKey: .mutes) ?? [:]
        quietHours = try values.decodeIfPresent(QuietHours.self, forKey: .quietHours)
        zone = try values.decodeIfPresent(Zone.self, forKey: .zone)
        language = try values.decodeIfPresent(Language.self, forKey: .language)
        digestTime = try values.decodeIfPresent(LocalTime.self, forKey: .digestTime)
    }

    package func encode(to encoder: any Encoder) throws {
        try json { .int($0.milliseconds) }.encode(to: encoder)
    }

    /// The user's choices as JSON; defaults are left out.
    ///
    /// - Parameter time: the JSON of a time, which the stored text and the HTTP API write differently.
    package func json(_ time: (Timestamp) -> JSONValue) -> JSONValue {
        var members: [String: JSONValue] = [:]
        if !isOn { members["enabled"] = false }
        if !channels.isEmpty { members["channels"] = channels.json }
        if !types.isEmpty { members["types"] = .object(types.mapValues(\.json)) }
        if !mutes.isEmpty {
            members["mutes"] = .object(
                mutes.mapValues { mute in
                    var members: [String: JSONValue] = ["muted": .bool(mute.isMuted)]
                    members["until"] = mute.until.map(time)
                    return .object(members)
                })
        }
        members["quiet_hours"] = quietHours.map { hours in
            [
                "days": .array(Weekday.allCases.filter(hours.days.contains).map { .string($0.rawValue) }),
                "start": .string(hours.start.description), "end": .string(hours.end.description),
            ]
        }
        members["digest_time"] = digestTime.map { .string($0.description) }
        members["zone"] = zone.map { .string($0.name) }
        members["language"] = language.map { .string($0.tag) }
        return .object(members)
    }
}

extension PersonalSettings {
    /// Decodes stored settings.
    ///
    /// Ignores members that this build cannot read, such as an unknown time zone. For them, the defaults apply.
    ///
    /// - Returns: the settings, and whether all members could be read.
    package static func stored(_ text: String) -> (value: PersonalSettings, isWhole: Bool) {
        if let whole = try? WireCoding.decodeStored(PersonalSettings.self, from: text) { return (whole, true) }
        let value = (try? WireCoding.decodeStored(JSONValue.self, from: text)) ?? .null
        var readable: [String: JSONValue] = [:]
        for (name, member) in value.object ?? [:] {
            for part in parts(name, member) where isReadable([name: part]) {
                readable[name] = (readable[name] ?? .object([:])).merging(part)
            }
        }
        let salvaged = try? decoded(.object(readable))
        return (salvaged ?? PersonalSettings(), false)
    }

    /// Splits a member into the parts that are decoded separately: each channel, type and mute.
    private static func parts(_ name: String, _ member: JSONValue) -> [JSONValue] {
        switch (CodingKeys(rawValue: name), member) {
        case (.channels?, .object(let entries)), (.types?, .object(let entries)), (.mutes?, .object(let entries)):
            entries.map { .object([$0.key: $0.value]) }
        default: [member]
        }
    }

    private static func isReadable(_ members: [String: JSONValue]) -> Bool {
        (try? decoded(.object(members))) != nil
    }

    private static func decoded(_ value: JSONValue) throws(WireError) -> PersonalSettings {
        try WireCoding.decodeStored(PersonalSettings.self, from: try WireCoding.text(value))
    }
}
