import FoundationEssentials
import PushProtocol
import RuleEngine
import RuleLanguage

// The JSON of preferences in the HTTP API. Times are in RFC 3339; the table `rules.person` has milliseconds.

extension PersonalSettings {
    private static let members = [
        "enabled", "channels", "types", "mutes", "quiet_hours", "digest_time", "zone", "language",
    ]

    init(_ value: JSONValue) throws(WireError) {
        self.init()
        let members = try JSONObjectReader(value, at: "the body", prefix: "", known: Self.members)
        isOn = try members.flag("enabled") ?? true
        let channels = try JSONObjectReader(
            members["channels"] ?? [:], at: "channels", prefix: "channels.", known: Channel.allCases.map(\.rawValue))
        for channel in Channel.allCases { self.channels[channel] = try channels.flag(channel.rawValue) }
        for (name, value) in try Self.object(members, "types") {
            let choice = try TypeChoice(value, at: "types.\(name)")
            // A type without any choice left is not stored.
            if !choice.isEmpty { types[name] = choice }
        }
        for (name, value) in try Self.object(members, "mutes") {
            mutes[name] = try Mute(value, at: "mutes.\(name)")
        }
        quietHours = try members["quiet_hours"].map { value throws(WireError) in try QuietHours(value) }
        digestTime = try Self.time(members, "digest_time", at: "digest_time")
        zone = try members["zone"].map { value throws(WireError) in
            guard let zone = value.string.flatMap(Zone.init(name:)) else {
                throw .invalid(path: "zone", problem: "expected a zone of the tz database, such as Europe/Berlin")
            }
            return zone
        }
        language = try members["language"].map { value throws(WireError) in
            guard let language = value.string.flatMap({ Language($0) }) else {
                throw .invalid(path: "language", problem: "expected a language tag of BCP 47, such as de or pt-BR")
            }
            return language
        }
    }

    private static func object(_ members: JSONObjectReader, _ name: String) throws(WireError) -> [String: JSONValue] {
        guard let value = members[name] else { return [:] }
        guard let object = value.object else { throw .invalid(path: name, problem: "expected an object") }
        return object
    }

    fileprivate static func time(_ members: JSONObjectReader, _ name: String, at path: String) throws(WireError)
        -> LocalTime?
    {
        guard let value = members[name] else { return nil }
        guard let time = value.string.flatMap({ LocalTime($0) }) else {
            throw .invalid(path: path, problem: "expected a time of day, such as 07:00")
        }
        return time
    }

    /// The user's choices as JSON; defaults are left out.
    var json: JSONValue {
        var members: [String: JSONValue] = [:]
        if !isOn { members["enabled"] = false }
        if !channels.isEmpty {
            members["channels"] = .object(
                Dictionary(channels.map { ($0.key.rawValue, .bool($0.value)) }) { first, _ in first })
        }
        if !types.isEmpty { members["types"] = .object(types.mapValues(\.json)) }
        if !mutes.isEmpty { members["mutes"] = .object(mutes.mapValues(\.json)) }
        members["quiet_hours"] = quietHours?.json
        members["digest_time"] = digestTime.map { .string($0.description) }
        members["zone"] = zone.map { .string($0.name) }
        members["language"] = language.map { .string($0.tag) }
        return .object(members)
    }
}

extension PersonalSettings.Mute {
    fileprivate init(_ value: JSONValue, at path: String) throws(WireError) {
        let members = try JSONObjectReader(value, at: path, prefix: "\(path).", known: ["muted", "until"])
        self.init(isMuted: try members.flag("muted") ?? true)
        guard let value = members["until"] else { return }
        guard let until = value.string.flatMap(RFC3339.date(from:)) else {
            throw .invalid(path: "\(path).until", problem: "expected a time (RFC 3339), such as 2026-03-29T08:00:00Z")
        }
        self.until = Timestamp(until)
    }

    fileprivate var json: JSONValue {
        var members: [String: JSONValue] = ["muted": .bool(isMuted)]
        members["until"] = until.map { .string(RFC3339.string(from: $0.date)) }
        return .object(members)
    }
}

extension QuietHours {
    fileprivate init(_ value: JSONValue) throws(WireError) {
        let members = try JSONObjectReader(
            value, at: "quiet_hours", prefix: "quiet_hours.", known: ["days", "start", "end"])
        var days = Set(Weekday.allCases)
        if let value = members["days"] {
            let words = value.array?.map { $0.string.flatMap(Weekday.init(rawValue:)) } ?? []
            days = Set(words.compactMap(\.self))
            guard !words.isEmpty, !words.contains(nil) else {
                let names = Weekday.allCases.map(\.rawValue).joined(separator: ", ")
                throw .invalid(path: "quiet_hours.days", problem: "expected at least one of \(names)")
            }
        }
        guard let start = try PersonalSettings.time(members, "start", at: "quiet_hours.start") else {
            throw .missing(path: "quiet_hours.start")
        }
        guard let end = try PersonalSettings.time(members, "end", at: "quiet_hours.end") else {
            throw .missing(path: "quiet_hours.end")
        }
        self.init(days: days, start: start, end: end)
    }

    fileprivate var json: JSONValue {
        [
            "days": .array(Weekday.allCases.filter(days.contains).map { .string($0.rawValue) }),
            "start": .string(start.description), "end": .string(end.description),
        ]
    }
}
