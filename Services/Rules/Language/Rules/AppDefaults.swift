/// The settings of an app's rule file that apply to all users.
package struct AppDefaults: Hashable, Sendable {
    package var zone: Zone = .utc
    /// The language of texts that are not translations.
    package var language: Language = .english
    package var types: [String: PreferenceType] = [:]
    package var caps: [String: Cap] = [:]

    package init(
        zone: Zone = .utc, language: Language = .english, types: [String: PreferenceType] = [:],
        caps: [String: Cap] = [:]
    ) {
        self.zone = zone
        self.language = language
        self.types = types
        self.caps = caps
    }
}

extension Rule.Policy {
    package var isCapped: Bool { !caps.isEmpty }
}

extension AppDefaults {
    package func isCritical(_ policy: Rule.Policy) -> Bool { policy.type.flatMap { types[$0]?.isCritical } ?? false }
}
