import Mustache
import PushProtocol

/// The first thing that went wrong in one rendering. Made for one call of ``Template/render(_:)`` and used by its thread
/// only; Mustache itself has no way to fail.
final class RenderLog {
    let localization: Localization
    /// In the language that the words are in, which need not be the person's.
    let words: Localization
    private(set) var problem: RenderError.Problem?
    /// How many elements of lists the sections may still render, and how many bytes the values may still show.
    private var elements = RenderLog.mostElements
    private var bytes = RenderLog.mostBytes

    /// The most elements of lists that one rendering goes through, those of nested sections multiplied: a few nested sections
    /// over one list of an event would never end.
    static let mostElements = 10_000
    /// The most bytes that the values of one rendering show: no message takes more.
    static let mostBytes = 512 * 1024

    init(localization: Localization, words: Language?) {
        self.localization = localization
        self.words = words.map { Localization(language: $0, zone: localization.zone) } ?? localization
    }

    func note(_ problem: RenderError.Problem) {
        if self.problem == nil { self.problem = problem }
    }

    /// Whether one more element of the list at a path is rendered. Nothing more is once something is wrong.
    func takesElement(at path: String) -> Bool {
        elements -= 1
        if elements < 0 {
            note(
                .unsuitable(path: path, expected: "short enough: sections render at most \(Self.mostElements) elements")
            )
        }
        return problem == nil
    }

    /// The text of the value at a path, or nothing when too much was shown.
    func shows(_ text: String, at path: String) -> String {
        bytes -= text.utf8.count
        guard bytes < 0 else { return text }
        note(.unsuitable(path: path, expected: "short enough: a text shows at most \(Self.mostBytes) bytes of values"))
        return ""
    }
}

/// A JSON value as the Mustache renderer sees it, told apart by how the renderer came to it.
///
/// Mustache looks a name up in every enclosing section, innermost first, so a section's object that lacks it must answer
/// `nil`; but the next member of a dotted path that is lacking is a mistake in the event. The renderer asks both through
/// `child(named:)`. It reads `representation` before each use, however, and that is where the roles change:
/// ``Role/found`` → (the end of a path, or the next step of it) ``Role/value`` → (pushed as a section) ``Role/section``.
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

    /// What a section takes for “no”: null, false and the empty text.
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

/// A list: a section renders once for each element.
struct TemplateList: MustacheSequence, MustacheParent, MustacheCustomRepresentation, MustacheCustomRenderable,
    MustacheTransformable
{
    let elements: [JSONValue]
    let path: String
    let log: RenderLog

    /// As an enclosing section (the inverted one of an empty list) it has no names of its own.
    var representation: Any? { TemplateNode(value: .array(elements), path: path, role: .section, log: log) }

    func child(named name: String) -> Any? { TemplateGap(path: "\(path).\(name)", log: log) }

    func makeIterator() -> some IteratorProtocol {
        elements.enumerated().lazy.prefix { _ in log.takesElement(at: path) }.map { index, element in
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

/// What the event lacks: nothing to a section, a mistake where it would be shown.
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

/// Nothing, on purpose.
struct TemplateBlank: MustacheParent, MustacheCustomRenderable, MustacheTransformable {
    func child(named: String) -> Any? { nil }
    var isNull: Bool { true }
    var renderText: String { "" }
    func transform(_ name: String) -> Any? { self }
}

extension JSONValue {
    /// How a scalar stands in a text; `nil` for what has no text.
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
