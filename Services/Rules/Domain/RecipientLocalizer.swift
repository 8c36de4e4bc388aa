import PushProtocol

/// What a rule says about one event, for each person in their own language and by their own clock.
struct RecipientLocalizer: Hashable, Sendable {
    private let rule: Rule
    private let scope: Scope
    private let defaults: AppDefaults
    private let needsZone: Bool

    /// - Returns: `nil` for a rule that says the same to everybody.
    init?(_ rule: Rule, _ scope: Scope, defaults: AppDefaults) {
        needsZone = rule.say.tags.contains { $0.filters.contains(where: \.needsZone) }
        guard needsZone || !rule.say.translations.isEmpty else { return nil }
        self.rule = rule
        self.scope = scope
        self.defaults = defaults
    }

    /// How a person hears it; as many voices as have to be told apart.
    func localization(for settings: PersonalSettings) -> Localization {
        Localization(
            language: defaults.language(for: settings, among: rule.say.translations.keys, exactly: needsZone),
            zone: needsZone ? settings.zone ?? defaults.zone : .utc)
    }

    func renderedText(_ localization: Localization) throws(PlacedProblem) -> RenderedText {
        var scope = scope
        scope.localization = localization
        return try rule.renderedText(scope, defaults: defaults.language)
    }

    /// Says it in all of its languages: what one of them lacks is found before anybody is told.
    func check() throws(PlacedProblem) {
        for language in rule.say.translations.keys {
            _ = try renderedText(Localization(language: language, zone: defaults.zone))
        }
    }
}

extension AppDefaults {
    /// The voice that something is said in when it is not known whose it shall be.
    var localization: Localization { Localization(language: language, zone: zone) }

    /// The language that a person hears, of those there are words in.
    ///
    /// - Parameter exactly: with the person's own region, which dates are written by.
    func language(
        for settings: PersonalSettings, among translations: some Collection<Language>, exactly: Bool
    ) -> Language {
        guard let wish = settings.language, let chosen = wish.choice(of: Array(translations) + [language]) else {
            return language
        }
        return exactly ? wish : chosen
    }
}
