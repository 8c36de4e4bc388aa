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
        channels = try .init(members["channels"] ?? [:], at: "channels")
        for (name, value) in try members.optional("types", "expected an object", \.object) ?? [:] {
            let choice = try TypeChoice(value, at: "types.\(name)")
            // A type without any choice left is not stored.
            if !choice.isEmpty { types[name] = choice }
        }
        for (name, value) in try members.optional("mutes", "expected an object", \.object) ?? [:] {
            mutes[name] = try Mute(value, at: "mutes.\(name)")
        }
        quietHours = try members["quiet_hours"].map { value throws(WireError) in try QuietHours(value) }
        digestTime = try members.time("digest_time")
        zone = try members.optional("zone", "expected a zone of the tz database, such as Europe/Berlin") { value in
            value.string.flatMap(Zone.init(name:))
        }
        language = try members.optional("language", "expected a language tag of BCP 47, such as de or pt-BR") { value in
            value.string.flatMap { Language($0) }
        }
    }

    /// The user's choices as JSON; defaults are left out.
    var json: JSONValue { json { .string(RFC3339.string(from: $0.date)) } }
}

extension JSONObjectReader {
    fileprivate func time(_ name: String) throws(WireError) -> LocalTime? {
        try optional(name, "expected a time of day, such as 07:00") { $0.string.flatMap { LocalTime($0) } }
    }
}

extension PersonalSettings.Mute {
    fileprivate init(_ value: JSONValue, at path: String) throws(WireError) {
        let members = try JSONObjectReader(value, at: path, prefix: "\(path).", known: ["muted", "until"])
        self.init(isMuted: try members.flag("muted") ?? true)
        until = try members.optional("until", "expected a time (RFC 3339), such as 2026-03-29T08:00:00Z") { value in
            value.string.flatMap(RFC3339.date(from:)).map(Timestamp.init)
        }
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
        guard let start = try members.time("start") else { throw .missing(path: "quiet_hours.start") }
        guard let end = try members.time("end") else { throw .missing(path: "quiet_hours.end") }
        self.init(days: days, start: start, end: end)
    }
}
