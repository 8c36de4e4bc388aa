package import PushProtocol

/// Renders one rule's text about one event in each recipient's language and time zone, and with their own words.
package struct RecipientLocalizer: Hashable, Sendable {
    private let rule: Rule
    private let scope: Scope
    private let defaults: AppDefaults
    /// The objects that name the recipients, for a rule that uses them.
    private let elements: [UserID: JSONValue]
    private let needsZone: Bool
    private let needsRegion: Bool

    /// - Returns: `nil` if all recipients get the same text.
    package init?(_ rule: Rule, _ scope: Scope, _ elements: [UserID: JSONValue] = [:], defaults: AppDefaults) {
        let filters = (rule.say.tags + rule.how.overrideTags).flatMap(\.filters)
        needsZone = filters.contains(where: \.needsZone)
        needsRegion = filters.contains(where: \.needsRegion)
        guard needsRegion || !rule.say.translations.isEmpty || !elements.isEmpty else { return nil }
        self.rule = rule
        self.scope = scope
        self.defaults = defaults
        self.elements = elements
    }

    /// Whether each recipient has their own text.
    package var isPersonal: Bool { !elements.isEmpty }

    /// Returns the language and time zone for a user's own ones. Users who get the same text have the same value.
    package func localization(language: Language?, zone: Zone?) -> Localization {
        Localization(
            language: defaults.language(preferring: language, among: rule.say.translations.keys, exactly: needsRegion),
            zone: needsZone ? zone ?? defaults.zone : .utc)
    }

    /// - Parameter user: the recipient, for a personal text.
    package func renderedText(
        _ localization: Localization, for user: UserID? = nil
    ) throws(PlacedProblem) -> RenderedText {
        try rule.renderedText(scope(localization, user), defaults: defaults.language)
    }

    /// The entry that the event adds to a recipient's digest; `nil` for a rule without one.
    package func entry(for user: UserID) throws(PlacedProblem) -> Digest.Entry? {
        try rule.policy.digest?.entry(rule: rule.name, scope(scope.localization, user))
    }

    private func scope(_ localization: Localization, _ user: UserID?) -> Scope {
        var scope = user.flatMap { elements[$0] }.map(scope.naming) ?? scope
        scope.localization = localization
        return scope
    }

    /// Renders every translation, so a missing variable is reported before anything is sent.
    package func check() throws(PlacedProblem) {
        let localizations = rule.say.translations.keys.map { Localization(language: $0, zone: defaults.zone) }
        for localization in localizations { _ = try renderedText(localization) }
        for user in elements.keys.sorted(by: { $0.rawValue < $1.rawValue }) {
            for localization in [scope.localization] + localizations { _ = try renderedText(localization, for: user) }
            if let entry = try entry(for: user) { try rule.checkSummary(entry, defaults) }
        }
    }
}

extension AppDefaults {
    /// The language and time zone of texts that are not for a specific user.
    package var localization: Localization { Localization(language: language, zone: zone) }

    /// Returns the user's preferred language if a text in it exists, and the file's language otherwise.
    ///
    /// - Parameter exactly: whether to keep the user's region, which determines date formats.
    package func language(
        preferring preferred: Language?, among translations: some Collection<Language>, exactly: Bool
    ) -> Language {
        guard let preferred, let chosen = preferred.choice(of: Array(translations) + [language])
        else {
            return language
        }
        return exactly ? preferred : chosen
    }
}
