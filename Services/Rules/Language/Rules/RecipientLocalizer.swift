/// Renders one rule's text about one event in each recipient's language and time zone.
package struct RecipientLocalizer: Hashable, Sendable {
    private let rule: Rule
    private let scope: Scope
    private let defaults: AppDefaults
    private let needsZone: Bool
    private let needsRegion: Bool

    /// - Returns: `nil` if all recipients get the same text.
    package init?(_ rule: Rule, _ scope: Scope, defaults: AppDefaults) {
        let filters = (rule.say.tags + rule.how.overrideTags).flatMap(\.filters)
        needsZone = filters.contains(where: \.needsZone)
        needsRegion = filters.contains(where: \.needsRegion)
        guard needsRegion || !rule.say.translations.isEmpty else { return nil }
        self.rule = rule
        self.scope = scope
        self.defaults = defaults
    }

    /// Returns the language and time zone for a user's own ones. Users who get the same text have the same value.
    package func localization(language: Language?, zone: Zone?) -> Localization {
        Localization(
            language: defaults.language(preferring: language, among: rule.say.translations.keys, exactly: needsRegion),
            zone: needsZone ? zone ?? defaults.zone : .utc)
    }

    package func renderedText(_ localization: Localization) throws(PlacedProblem) -> RenderedText {
        var scope = scope
        scope.localization = localization
        return try rule.renderedText(scope, defaults: defaults.language)
    }

    /// Renders every translation, so a missing variable is reported before anything is sent.
    package func check() throws(PlacedProblem) {
        for language in rule.say.translations.keys {
            _ = try renderedText(Localization(language: language, zone: defaults.zone))
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
