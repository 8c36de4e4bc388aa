/// A text with variables, in Mustache.
///
/// Values are not HTML-escaped, because a phone shows the result. Braces inside a value are not parsed.
package struct Template: Sendable {
    let text: String
    let tags: [TemplateTag]
    /// The language of its plural rules; `nil`: the recipient's.
    let language: Language?
    let parts: [TemplatePart]

    init(_ text: String, in language: Language? = nil) throws(TemplateError) {
        self.text = text
        self.language = language
        let parser = try TemplateParser(text)
        tags = parser.tags
        parts = parser.parts
        try TemplateTag.checkPlurals(tags, in: language ?? .english)
    }

    /// Renders the text for one event. `place` is the template's place in its rule, for errors.
    func render(_ scope: Scope, place: String) throws(PlacedProblem) -> String {
        do { return try render(scope) } catch { throw PlacedProblem(place, error) }
    }

    /// Renders the text for one event and converts it.
    ///
    /// - Parameters:
    ///   - what: the name in the error if the template has no variable.
    ///   - read: converts the text; returns `nil` if the text is invalid.
    func render<Value>(
        _ scope: Scope, place: String, _ what: String, expected: String, as read: (String) -> Value?
    ) throws(PlacedProblem) -> Value {
        guard let value = read(try render(scope, place: place)) else {
            throw PlacedProblem(place, .unsuitable(path: tags.first?.path ?? what, expected: expected))
        }
        return value
    }

    /// Renders the text for one event.
    func render(_ scope: Scope) throws(RenderError.Problem) -> String {
        var renderer = TemplateRenderer(scope, language: language)
        try renderer.render(parts)
        return renderer.text
    }
}

extension Template: Hashable {
    package static func == (a: Template, b: Template) -> Bool { a.text == b.text && a.language == b.language }
    package func hash(into hasher: inout Hasher) { hasher.combine(text) }
}
