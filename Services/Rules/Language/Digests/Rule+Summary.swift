package import PushProtocol

extension Rule {
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
