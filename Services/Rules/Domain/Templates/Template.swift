import Mustache
import PushProtocol

/// A text with variables, in Mustache. Nothing is escaped: the result is shown by a phone, not by a browser, and a value
/// is never read as a template, whatever braces it holds.
struct Template: Sendable {
    let text: String
    let tags: [TemplateTag]
    /// What its plurals go by; absent: the person's.
    let language: Language?
    private let mustache: MustacheTemplate?

    /// - Parameter language: that it is written in.
    init(_ text: String, in language: Language? = nil) throws(TemplateError) {
        self.text = text
        self.language = language
        let scanned = try TemplateTag.scan(text)
        tags = scanned.tags
        try TemplateTag.checkPlurals(tags, in: language ?? .english)
        guard !tags.isEmpty || text.contains("{{") else {
            mustache = nil
            return
        }
        do {
            // A pragma alone on its line leaves nothing behind.
            mustache = try MustacheTemplate(string: "{{% CONTENT_TYPE:TEXT}}\n" + scanned.named)
        } catch {
            throw TemplateError(problem: "not a Mustache template: \(error)")
        }
    }

    /// The text for one event, of what stands at a place of its rule.
    func render(_ scope: Scope, place: String) throws(PlacedProblem) -> String {
        do { return try render(scope) } catch { throw PlacedProblem(place, error) }
    }

    /// The text for one event, where not every text will do.
    ///
    /// - Parameters:
    ///   - what: what to call it where it has no variable.
    ///   - read: the text as what is wanted; `nil` where it is not.
    func render<Value>(
        _ scope: Scope, place: String, _ what: String, expected: String, as read: (String) -> Value?
    ) throws(PlacedProblem) -> Value {
        guard let value = read(try render(scope, place: place)) else {
            throw PlacedProblem(place, .unsuitable(path: tags.first?.path ?? what, expected: expected))
        }
        return value
    }

    /// The text for one event.
    func render(_ scope: Scope) throws(RenderError.Problem) -> String {
        guard let mustache else { return text }
        let log = RenderLog(localization: scope.localization, words: language)
        let result = mustache.render(TemplateNode(root: scope.root, log: log))
        if let problem = log.problem { throw problem }
        return result
    }
}

extension Template: Hashable {
    static func == (a: Template, b: Template) -> Bool { a.text == b.text && a.language == b.language }
    func hash(into hasher: inout Hasher) { hasher.combine(text) }
}
