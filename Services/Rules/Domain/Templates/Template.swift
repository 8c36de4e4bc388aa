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

    /// The text for one event.
    func render(_ scope: Scope) throws(RenderError.Problem) -> String {
        guard let mustache else { return text }
        let log = RenderLog(voice: scope.voice, words: language)
        let result = mustache.render(TemplateNode(root: scope.root, log: log))
        if let problem = log.problem { throw problem }
        return result
    }
}

extension Template: Hashable {
    static func == (a: Template, b: Template) -> Bool { a.text == b.text && a.language == b.language }
    func hash(into hasher: inout Hasher) { hasher.combine(text) }
}
