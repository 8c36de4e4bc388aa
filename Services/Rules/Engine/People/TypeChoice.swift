package import PushProtocol
package import RuleLanguage

/// A user's choice for one ``PreferenceType``.
package enum TypeChoice: Hashable, Sendable {
    /// One choice for pushes and banners. The inbox is not affected.
    case all(Bool)
    /// One choice for each channel. A channel without a choice has the default of the rule file.
    case each([PersonalSettings.Channel: Bool])
}

extension TypeChoice: ExpressibleByBooleanLiteral {
    package init(booleanLiteral isOn: Bool) { self = .all(isOn) }
}

extension PersonalSettings {
    /// Whether the user wants a type on a channel. Considers only the choice for the type.
    package func wants(_ name: String, by channel: Channel, _ defaults: AppDefaults) -> Bool {
        let defaultChoice = channel == .inbox || defaults.types[name]?.isOn ?? true
        return switch types[name] {
        case nil: defaultChoice
        case .all(let isOn)?: channel == .inbox || isOn
        case .each(let words)?: words[channel] ?? defaultChoice
        }
    }

    /// Whether the user has a separate choice for a type on a channel.
    func hasChannelChoice(on name: String, by channel: Channel) -> Bool {
        guard case .each(let words)? = types[name] else { return false }
        return words[channel] != nil
    }
}

extension AppDefaults {
    /// Whether the inbox keeps a notification: its rule and, unless it is critical, the user's settings must allow it.
    package func keeps(_ policy: Rule.Policy, for settings: PersonalSettings) -> Bool {
        guard policy.inbox, !isCritical(policy) else { return policy.inbox }
        return settings.allows(.inbox) && policy.type.map { settings.wants($0, by: .inbox, self) } ?? true
    }
}

// MARK: - JSON and storage

extension TypeChoice {
    package init(_ value: JSONValue, at path: String) throws(WireError) {
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

    package var json: JSONValue {
        switch self {
        case .all(let isOn): .bool(isOn)
        case .each(let words):
            .object(Dictionary(words.map { ($0.key.rawValue, .bool($0.value)) }) { first, _ in first })
        }
    }

    /// Whether it has no choice.
    package var isEmpty: Bool { self == .each([:]) }
}

extension TypeChoice: Codable {
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let isOn = try? container.decode(Bool.self) {
            self = .all(isOn)
            return
        }
        var words: [PersonalSettings.Channel: Bool] = [:]
        // Ignores channels of a later version.
        for (name, isOn) in try container.decode([String: Bool].self) {
            if let channel = PersonalSettings.Channel(rawValue: name) { words[channel] = isOn }
        }
        self = .each(words)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .all(let isOn): try container.encode(isOn)
        case .each(let words):
            try container.encode(Dictionary(words.map { ($0.key.rawValue, $0.value) }) { first, _ in first })
        }
    }
}
