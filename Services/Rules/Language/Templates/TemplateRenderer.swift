import PushProtocol

/// Renders a template once.
///
/// A name is looked up in every enclosing section, the innermost first. A variable that is absent or null is an error,
/// unless its filter is `optional`; a section treats both as false.
struct TemplateRenderer {
    /// The maximum number of list elements in one rendering.
    ///
    /// Nested sections multiply the number: without a limit, a few of them over one list could render for hours.
    static let mostElements = 10_000
    /// The maximum size of the values in one rendering, in bytes. No message can carry more.
    static let mostBytes = 512 * 1024

    private let localization: Localization
    /// The localization of the template's language, which can differ from the recipient's.
    private let textLocalization: Localization
    private var remainingElements = mostElements
    private var remainingBytes = mostBytes
    /// The values of the root and of the enclosing sections, with their paths.
    private var stack: [(value: JSONValue, path: String)]
    private(set) var text = ""

    init(_ scope: Scope, language: Language?) {
        localization = scope.localization
        textLocalization =
            language.map { Localization(language: $0, zone: scope.localization.zone) } ?? scope.localization
        stack = [(scope.root, "")]
    }

    mutating func render(_ parts: [TemplatePart]) throws(RenderError.Problem) {
        for part in parts {
            switch part {
            case .text(let text): self.text += text
            case .variable(let tag): try show(tag)
            case .section(let tag, let inner):
                guard case .present(let value, let path) = try found(tag) else { continue }
                if case .array(let elements) = value {
                    for (index, element) in elements.enumerated() {
                        try countElement(path)
                        try render(inner, in: element, "\(path).\(index)")
                    }
                } else if !value.isFalse {
                    try render(inner, in: value, path)
                }
            case .inverted(let tag, let inner):
                switch try found(tag) {
                case .present(.array([]), let path): try render(inner, in: [], path)
                case .present(let value, path: _): if value.isFalse { try render(inner) }
                case .missing, .left: try render(inner)
                }
            }
        }
    }

    private mutating func render(
        _ parts: [TemplatePart], in value: JSONValue, _ path: String
    ) throws(RenderError.Problem) {
        stack.append((value, path))
        try render(parts)
        stack.removeLast()
    }

    private mutating func show(_ tag: TemplateTag) throws(RenderError.Problem) {
        switch try found(tag) {
        case .present(let value, let path):
            guard let shown = value.shown else {
                throw value == .null
                    ? .null(path: path) : .unsuitable(path: path, expected: "a text, a number or a boolean")
            }
            remainingBytes -= shown.utf8.count
            guard remainingBytes >= 0 else {
                throw .unsuitable(
                    path: path, expected: "short enough: a text shows at most \(Self.mostBytes) bytes of values")
            }
            text += shown
        case .missing(let path): throw .missing(path: path)
        case .left: break
        }
    }

    private mutating func countElement(_ path: String) throws(RenderError.Problem) {
        remainingElements -= 1
        guard remainingElements >= 0 else {
            throw .unsuitable(
                path: path, expected: "short enough: sections render at most \(Self.mostElements) elements")
        }
    }
}

// MARK: - Lookup

extension TemplateRenderer {
    private enum Found {
        case present(JSONValue, path: String)
        case missing(path: String)
        /// An absent or null value that is optional.
        case left
    }

    private func found(_ tag: TemplateTag) throws(RenderError.Problem) -> Found {
        var found = found(tag.path)
        for filter in tag.filters.reversed() {
            switch found {
            case .left: break
            case .missing, .present(.null, path: _): if filter == .optional { found = .left }
            case .present(let value, let path):
                guard let result = filter.apply(value, filter.isPlural ? textLocalization : localization) else {
                    throw .unsuitable(path: path, expected: filter.input)
                }
                found = .present(result, path: path)
            }
        }
        return found
    }

    private func found(_ path: String) -> Found {
        let inner = stack[stack.count - 1]
        guard path != "." else { return .present(inner.value, path: inner.path) }
        let names = path.split(separator: ".").map(String.init)
        let holder = stack.last { $0.value[names[0]] != nil } ?? stack[0]
        var (value, path) = holder
        for (index, name) in names.enumerated() {
            path = path.isEmpty ? name : "\(path).\(name)"
            guard let member = value[name] else {
                return .missing(path: ([path] + names[(index + 1)...]).joined(separator: "."))
            }
            value = member
        }
        return .present(value, path: path)
    }
}

extension JSONValue {
    /// Whether a section treats the value as false: null, false, the empty text and the empty list.
    fileprivate var isFalse: Bool {
        switch self {
        case .null, .bool(false), .string(""), .array([]): true
        case .bool, .string, .int, .double, .array, .object: false
        }
    }

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
