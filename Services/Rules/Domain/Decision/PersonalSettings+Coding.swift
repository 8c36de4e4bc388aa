import PushProtocol

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

    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        isOn = try values.decodeIfPresent(Bool.self, forKey: .isOn) ?? true
        for (name, isOn) in try values.decodeIfPresent([String: Bool].self, forKey: .channels) ?? [:] {
            if let channel = Channel(rawValue: name) { channels[channel] = isOn }
        }
        types = try values.decodeIfPresent([String: TypeChoice].self, forKey: .types) ?? [:]
        mutes = try values.decodeIfPresent([String: Mute].self, forKey: .mutes) ?? [:]
        quietHours = try values.decodeIfPresent(QuietHours.self, forKey: .quietHours)
        zone = try values.decodeIfPresent(Zone.self, forKey: .zone)
        language = try values.decodeIfPresent(Language.self, forKey: .language)
        digestTime = try values.decodeIfPresent(LocalTime.self, forKey: .digestTime)
    }

    func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        if !isOn { try values.encode(false, forKey: .isOn) }
        if !channels.isEmpty {
            let names = Dictionary(channels.map { ($0.key.rawValue, $0.value) }) { first, _ in first }
            try values.encode(names, forKey: .channels)
        }
        if !types.isEmpty { try values.encode(types, forKey: .types) }
        if !mutes.isEmpty { try values.encode(mutes, forKey: .mutes) }
        try values.encodeIfPresent(quietHours, forKey: .quietHours)
        try values.encodeIfPresent(zone, forKey: .zone)
        try values.encodeIfPresent(language, forKey: .language)
        try values.encodeIfPresent(digestTime, forKey: .digestTime)
    }
}

extension PersonalSettings {
    /// Decodes stored settings.
    ///
    /// Ignores members that this build cannot read, such as an unknown time zone. For them, the defaults apply.
    ///
    /// - Returns: the settings, and whether all members could be read.
    static func stored(_ text: String) -> (value: PersonalSettings, isWhole: Bool) {
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
        try WireCoding.decodeStored(
            PersonalSettings.self, from: String(decoding: try WireCoding.encode(value), as: UTF8.self))
    }
}

extension PersonalSettings.Mute: Codable {
    private enum CodingKeys: String, CodingKey {
        case isMuted = "muted"
        case until
    }

    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        isMuted = try values.decode(Bool.self, forKey: .isMuted)
        until = try values.decodeIfPresent(Timestamp.self, forKey: .until)
    }

    func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(isMuted, forKey: .isMuted)
        try values.encodeIfPresent(until, forKey: .until)
    }
}

extension QuietHours: Codable {
    private enum CodingKeys: String, CodingKey { case days, start, end }

    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        days = try values.decodeIfPresent(Set<Weekday>.self, forKey: .days) ?? Set(Weekday.allCases)
        start = try values.decode(LocalTime.self, forKey: .start)
        end = try values.decode(LocalTime.self, forKey: .end)
    }

    func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        // In the order of the week, so equal settings give equal text.
        try values.encode(Weekday.allCases.filter(days.contains), forKey: .days)
        try values.encode(start, forKey: .start)
        try values.encode(end, forKey: .end)
    }
}

extension Weekday: Codable {
    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let day = Weekday(rawValue: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "not one of \(Weekday.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        self = day
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }
}

extension LocalTime: Codable {
    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let time = LocalTime(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a time such as 07:00")
        }
        self = time
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

extension Zone: Codable {
    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let zone = Zone(name: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "not a zone of the tz database such as Europe/Berlin")
        }
        self = zone
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(name)
    }
}
