import PushProtocol

/// What a person wants of one ``PreferenceType``.
enum TypeChoice: Hashable, Sendable {
    /// One word about what makes noise of it. The inbox has it all the same.
    case all(Bool)
    /// A word about each way by itself; what is absent is as the rule file says.
    case each([PersonalSettings.Channel: Bool])
}

extension TypeChoice: ExpressibleByBooleanLiteral {
    init(booleanLiteral isOn: Bool) { self = .all(isOn) }
}

extension PersonalSettings {
    /// Whether the person wants a type by this way, as far as the type goes.
    func wants(_ name: String, by channel: Channel, _ defaults: AppDefaults) -> Bool {
        let usual = channel == .inbox || defaults.types[name]?.isOn ?? true
        return switch types[name] {
        case nil: usual
        case .all(let isOn)?: channel == .inbox || isOn
        case .each(let words)?: words[channel] ?? usual
        }
    }

    /// Whether the person has a word about this very way of a type.
    func hasWord(on name: String, by channel: Channel) -> Bool {
        guard case .each(let words)? = types[name] else { return false }
        return words[channel] != nil
    }
}

extension AppDefaults {
    /// Whether the person finds it in the inbox: if its rule keeps it there, and the person wants it there.
    func keeps(_ policy: Rule.Policy, for settings: PersonalSettings) -> Bool {
        guard policy.inbox, !isCritical(policy) else { return policy.inbox }
        return settings.allows(.inbox) && policy.type.map { settings.wants($0, by: .inbox, self) } ?? true
    }
}

// MARK: - As it is read, written and stored

extension TypeChoice {
    /// - Parameter path: where it stands, for the error.
    init(_ value: JSONValue, at path: String) throws(WireError) {
        if let isOn = value.bool {
            self = .all(isOn)
            return
        }
        let names = PersonalSettings.Channel.allCases.map(\.rawValue)
        guard value.object != nil else {
            throw .invalid(
                path: path, problem: "expected true or false, or an object of \(names.joined(separator: ", "))")
        }
        let members = try JSONObjectReader(value, at: path, prefix: "\(path).", known: names)
        var words: [PersonalSettings.Channel: Bool] = [:]
        for channel in PersonalSettings.Channel.allCases { words[channel] = try members.flag(channel.rawValue) }
        self = .each(words)
    }

    var json: JSONValue {
        switch self {
        case .all(let isOn): .bool(isOn)
        case .each(let words):
            .object(Dictionary(words.map { ($0.key.rawValue, .bool($0.value)) }) { first, _ in first })
        }
    }

    /// Whether there is nothing in it.
    var isEmpty: Bool { self == .each([:]) }
}

extension TypeChoice: Codable {
    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let isOn = try? container.decode(Bool.self) {
            self = .all(isOn)
            return
        }
        var words: [PersonalSettings.Channel: Bool] = [:]
        // A way that this build does not know is a later one's.
        for (name, isOn) in try container.decode([String: Bool].self) {
            if let channel = PersonalSettings.Channel(rawValue: name) { words[channel] = isOn }
        }
        self = .each(words)
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .all(let isOn): try container.encode(isOn)
        case .each(let words):
            try container.encode(Dictionary(words.map { ($0.key.rawValue, $0.value) }) { first, _ in first })
        }
    }
}
