package import PushProtocol

extension Rule {
    /// Renders a digest of one entry alone: a missing value fails the event now, and not the digest later.
    func checkSummary(_ entry: Digest.Entry, _ defaults: AppDefaults) throws(PlacedProblem) {
        guard let digest = policy.digest else { return }
        for language in [defaults.language] + digest.say.translations.keys {
            let localization = Localization(language: language, zone: defaults.zone)
            _ = try summary(digest, of: [entry.values], localization, defaults: defaults.language)
        }
    }

    /// Renders a digest's summary for a recipient.
    ///
    /// - Parameter items: the items' values, in order of arrival.
    package func summary(_ digest: Digest, of items: [JSONValue], _ localization: Localization, defaults: Language)
        throws(PlacedProblem)
        -> RenderedText
    {
        var rule = self
        // These settings refer to one event.
        rule.how.thread = nil
        rule.how.collapseKey = nil
        rule.how.badge = nil
        rule.how.removeVariableOverrides()
        rule.say = digest.say
        let scope = Scope(root: Digest.summary(digest.ordered(items)), localization: localization)
        let messageTemplate = rule.messageTemplate(in: localization.language, defaults: defaults)
        let content = try rule.content(messageTemplate, scope, place: "policy.digest.say")
        return RenderedText(content: content, preview: try rule.preview(of: content, messageTemplate, scope))
    }
}
