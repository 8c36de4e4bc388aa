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
        self = .each(try .init(value, at: path))
    }

    package var json: JSONValue {
        switch self {
        case .all(let isOn): .bool(isOn)
        case .each(let words): words.json
        }
    }

    /// Whether it has no choice.
    package var isEmpty: Bool { self == .each([:]) }
}

extension TypeChoice: Decodable {
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let isOn = try? container.decode(Bool.self) {
            self = .all(isOn)
            return
        }
        self = .each(.init(named: try container.decode([String: Bool].self)))
    }
}

extension [PersonalSettings.Channel: Bool] {
    /// Ignores channels of a later version.
    init(named choices: [String: Bool]) {
        self.init(uniqueKeysWithValues: choices.compactMap { name, isOn in Key(rawValue: name).map { ($0, isOn) } })
    }

    package init(_ value: JSONValue, at path: String) throws(WireError) {
        let members = try JSONObjectReader(
            value, at: path, prefix: "\(path).", known: PersonalSettings.Channel.allCases.map(\.rawValue))
        self.init()
        for channel in PersonalSettings.Channel.allCases { self[channel] = try members.flag(channel.rawValue) }
    }

    var json: JSONValue { .object(.init(uniqueKeysWithValues: map { ($0.key.rawValue, .bool($0.value)) })) }
}
