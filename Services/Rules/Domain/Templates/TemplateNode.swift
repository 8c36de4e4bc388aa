import Mustache
import PushProtocol

/// Records the first problem of one rendering, because Mustache does not report missing values.
///
/// One call of ``Template/render(_:)`` creates it. Only the thread of that call uses it.
final class RenderLog {
    let localization: Localization
    /// The localization of the template's language, which can differ from the recipient's.
    let words: Localization
    private(set) var problem: RenderError.Problem?
    /// The remaining list elements for sections, and the remaining bytes for values.
    private var elements = RenderLog.mostElements
    private var bytes = RenderLog.mostBytes

    /// The maximum number of list elements in one rendering.
    ///
    /// Nested sections multiply the number: without a limit, a few of them over one list could render for hours.
    static let mostElements = 10_000
    /// The maximum size of the values in one rendering, in bytes. No message can carry more.
    static let mostBytes = 512 * 1024

    init(localization: Localization, words: Language?) {
        self.localization = localization
        self.words = words.map { Localization(language: $0, zone: localization.zone) } ?? localization
    }

    func note(_ problem: RenderError.Problem) {
        if self.problem == nil { self.problem = problem }
    }

    /// Counts a list element and returns whether to render it: `false` above the limit and after a problem.
    func countsElement(at path: String) -> Bool {
        elements -= 1
        if elements < 0 {
            note(
                .unsuitable(path: path, expected: "short enough: sections render at most \(Self.mostElements) elements")
            )
        }
        return problem == nil
    }

    /// Counts the bytes of a value's text and returns the text, or an empty text above the limit.
    func shows(_ text: String, at path: String) -> String {
        bytes -= text.utf8.count
        guard bytes < 0 else { return text }
        note(.unsuitable(path: path, expected: "short enough: a text shows at most \(Self.mostBytes) bytes of values"))
        return ""
    }
}

/// Adapts a JSON value to the Mustache renderer. The role records how the renderer reached the value.
///
/// Mustache looks up a name in every enclosing section, innermost first. A section's object must return `nil` for a
/// name that it lacks. A missing member of a dotted path, however, is an error of the event. The renderer calls
/// `child(named:)` in both cases. It reads `representation` before each use, so the role changes there: ``Role/found``
/// becomes ``Role/value`` at the end of a path or at its next member. ``Role/value`` becomes ``Role/section`` when the
/// renderer pushes the value as a section.
struct TemplateNode: MustacheParent, MustacheCustomRepresentation, MustacheCustomRenderable, MustacheTransformable {
    enum Role { case root, found, value, section }

    let value: JSONValue
    let path: String
    let role: Role
    let log: RenderLog

    init(root: JSONValue, log: RenderLog) { self.init(value: root, path: "", role: .root, log: log) }

    init(value: JSONValue, path: String, role: Role, log: RenderLog) {
        self.value = value
        self.path = path
        self.role = role
        self.log = log
    }

    var representation: Any? {
        switch role {
        case .root, .section: self
        case .found:
            if case .array(let elements) = value {
                TemplateList(elements: elements, path: path, log: log)
            } else {
                TemplateNode(value: value, path: path, role: .value, log: log)
            }
        case .value: TemplateNode(value: value, path: path, role: .section, log: log)
        }
    }

    func child(named name: String) -> Any? {
        let childPath = path.isEmpty ? name : "\(path).\(name)"
        if let child = value[name] { return TemplateNode(value: child, path: childPath, role: .found, log: log) }
        return role == .section ? nil : TemplateGap(path: childPath, log: log)
    }

    /// Whether a section treats the value as false: null, false and the empty text.
    var isNull: Bool {
        switch value {
        case .null, .bool(false), .string(""): true
        case .bool, .string, .int, .double, .array, .object: false
        }
    }

    var renderText: String {
        if let text = value.shown { return log.shows(text, at: path) }
        log.note(
            value == .null ? .null(path: path) : .unsuitable(path: path, expected: "a text, a number or a boolean"))
        return ""
    }

    func transform(_ name: String) -> Any? {
        guard let filter = Filter(name: name) else { return nil }
        if value == .null { return filter == .optional ? TemplateBlank() : self }
        guard let result = filter.apply(value, filter.isPlural ? log.words : log.localization) else {
            log.note(.unsuitable(path: path, expected: filter.input))
            return TemplateBlank()
        }
        return TemplateNode(value: result, path: path, role: .found, log: log).representation
    }
}

/// A JSON array; a section renders once for each element.
struct TemplateList: MustacheSequence, MustacheParent, MustacheCustomRepresentation, MustacheCustomRenderable,
    MustacheTransformable
{
    let elements: [JSONValue]
    let path: String
    let log: RenderLog

    /// Mustache pushes the list for an inverted section if the list is empty. As a section it has no members.
    var representation: Any? { TemplateNode(value: .array(elements), path: path, role: .section, log: log) }

    func child(named name: String) -> Any? { TemplateGap(path: "\(path).\(name)", log: log) }

    func makeIterator() -> some IteratorProtocol {
        elements.enumerated().lazy.prefix { _ in log.countsElement(at: path) }.map { index, element in
            TemplateNode(value: element, path: "\(path).\(index)", role: .value, log: log)
        }.makeIterator()
    }

    var isNull: Bool { elements.isEmpty }

    var renderText: String {
        log.note(.unsuitable(path: path, expected: "a text, a number or a boolean"))
        return ""
    }

    func transform(_ name: String) -> Any? {
        TemplateNode(value: .array(elements), path: path, role: .value, log: log).transform(name)
    }
}

/// A value that the event lacks: false for a section, an error for a variable.
struct TemplateGap: MustacheParent, MustacheCustomRenderable, MustacheTransformable {
    let path: String
    let log: RenderLog

    func child(named name: String) -> Any? { TemplateGap(path: "\(path).\(name)", log: log) }

    var isNull: Bool { true }

    var renderText: String {
        log.note(.missing(path: path))
        return ""
    }

    func transform(_ name: String) -> Any? { name == Filter.optional.name ? TemplateBlank() : self }
}

/// Renders as nothing: an absent optional value, or a value whose problem is already recorded.
struct TemplateBlank: MustacheParent, MustacheCustomRenderable, MustacheTransformable {
    func child(named: String) -> Any? { nil }
    var isNull: Bool { true }
    var renderText: String { "" }
    func transform(_ name: String) -> Any? { self }
}

extension JSONValue {
    /// A scalar as text; `nil` for null, arrays and objects.
    var shown: String? {
        switch self {
        case .string(let text): text
        case .int(let number): String(number)
        case .double(let number): "\(number)"
        case .bool(let truth): truth ? "true" : "false"
        case .null, .array, .object: nil
        }
    }
}
