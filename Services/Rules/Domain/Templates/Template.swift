import Mustache
import PushProtocol

/// A text with variables, in Mustache. Nothing is escaped: the result is shown by a phone, not by a browser, and a value
/// is never read as a template, whatever braces it holds.
struct Template: Sendable {
    let text: String
    let tags: [TemplateTag]
    private let mustache: MustacheTemplate?

    init(_ text: String) throws(TemplateError) {
        self.text = text
        tags = try TemplateTag.scan(text)
        guard !tags.isEmpty || text.contains("{{") else {
            mustache = nil
            return
        }
        do {
            // A pragma alone on its line leaves nothing behind.
            mustache = try MustacheTemplate(string: "{{% CONTENT_TYPE:TEXT}}\n" + text)
        } catch {
            throw TemplateError(problem: "not a Mustache template: \(error)")
        }
    }

    /// The text for one event.
    func render(_ scope: Scope) throws(RenderError.Problem) -> String {
        guard let mustache else { return text }
        let log = RenderLog(voice: scope.voice)
        let result = mustache.render(TemplateNode(root: scope.root, log: log))
        if let problem = log.problem { throw problem }
        return result
    }
}

extension Template: Hashable {
    static func == (a: Template, b: Template) -> Bool { a.text == b.text }
    func hash(into hasher: inout Hasher) { hasher.combine(text) }
}
