import Primitives

/// A tag of a Mustache template: `{{path}}`, `{{filter(path)}}`, `{{#path}}`, `{{^path}}` or `{{/path}}`.
struct TemplateTag: Hashable, Sendable {
    enum Kind: Hashable, Sendable { case variable, section, inverted, close }
    var kind: Kind
    /// The dotted path; `.` is the current element of a list.
    var path: String
    /// Outermost first, as written.
    var filters: [Filter]
    /// The number of enclosing sections; plural sections and their forms do not count.
    var depth: Int
    /// Whether the whole template is this one tag.
    var isWhole: Bool
    /// Whether the tag is a form in a plural section: `{{#few}}`.
    var isForm = false
    /// The forms in a plural section.
    var forms: [String] = []
}

/// The reason why a text is not a valid template.
struct TemplateError: Error, Hashable {
    var problem: String
}

extension TemplateTag {
    /// Returns the tags of `text`.
    ///
    /// Rules support the variables, sections, inverted sections and comments of Mustache. Partials, blocks, pragmas and
    /// changed delimiters throw an error.
    ///
    /// - Returns: the tags, and the text with each `plural` filter renamed after the forms in its section.
    static func scan(_ text: String) throws(TemplateError) -> (tags: [TemplateTag], named: String) {
        var tags: [TemplateTag] = []
        var ranges: [Range<String.Index>] = []
        var open: [Open] = []
        var rest = text[...]
        while let start = rest.firstRange(of: "{{") {
            let isTriple = rest[start.upperBound...].first == "{"
            let body = isTriple ? rest.index(after: start.upperBound) : start.upperBound
            guard let end = rest[body...].firstRange(of: isTriple ? "}}}" : "}}") else {
                throw TemplateError(problem: "{{ is never closed")
            }
            let isWhole = start.lowerBound == text.startIndex && end.upperBound == text.endIndex
            let inside = String(rest[body..<end.lowerBound])
            rest = rest[end.upperBound...]
            guard var tag = try TemplateTag(inside, isUnescaped: isTriple) else { continue }
            tag.isWhole = isWhole
            let written = tag.written
            let around = open.last
            switch tag.kind {
            case .variable: try tag.checkNoPlural()
            case .section, .inverted:
                tag.isForm = around.map { $0.plural != nil } ?? false
                if tag.isForm, let plural = around?.plural {
                    guard tag.kind == .section, tag.filters.isEmpty else {
                        throw TemplateError(problem: "a plural section contains only forms, such as {{#other}}")
                    }
                    tags[plural].forms.append(tag.path)
                }
                if tag.kind == .inverted || !tag.isPlural { try tag.checkNoPlural() }
                open.append(Open(written: written, plural: tag.isPlural ? tags.count : nil, isForm: tag.isForm))
            case .close:
                guard let closed = open.popLast(), closed.written == written else {
                    throw TemplateError(problem: "{{/\(written)}} closes a section that is not open")
                }
                tag.isForm = closed.isForm
                if let plural = closed.plural { tag.forms = tags[plural].forms }
            }
            tag.depth = open.count { $0.plural == nil && !$0.isForm }
            if tag.kind != .variable, tag.kind != .close, !tag.isForm, !tag.isPlural { tag.depth -= 1 }
            tags.append(tag)
            ranges.append(start.lowerBound..<end.upperBound)
        }
        if let left = open.last { throw TemplateError(problem: "the section {{#\(left.written)}} is never closed") }
        return (tags, named(text, tags, ranges))
    }

    /// A section that is not closed yet.
    private struct Open {
        var written: String
        /// The index of the plural's tag.
        var plural: Int?
        var isForm: Bool
    }

    var isPlural: Bool { filters.first?.isPlural ?? false }

    private func checkNoPlural() throws(TemplateError) {
        if filters.contains(where: \.isPlural) {
            throw TemplateError(
                problem:
                    "“plural” needs a section: {{#plural(\(path))}}{{#one}}…{{/one}}{{#other}}…{{/other}}{{/plural(\(path))}}"
            )
        }
    }

    private static func named(_ text: String, _ tags: [TemplateTag], _ ranges: [Range<String.Index>]) -> String {
        var named = ""
        var end = text.startIndex
        for (tag, range) in zip(tags, ranges) where tag.isPlural {
            let forms = Set(tag.forms.compactMap(PluralCategory.init(rawValue:)))
            named += text[end..<range.lowerBound]
            named += text[range].replacing("plural(", with: "\(Filter.pluralName(forms))(", maxReplacements: 1)
            end = range.upperBound
        }
        return named + text[end...]
    }

    /// Checks that every plural has `other`, and only forms of its language.
    static func checkPlurals(_ tags: [TemplateTag], in language: Language) throws(TemplateError) {
        for tag in tags where tag.isPlural && tag.kind == .section {
            let known = PluralRules(language)?.categories.map(\.rawValue) ?? [PluralCategory.other.rawValue]
            for form in tag.forms where !known.contains(form) {
                throw TemplateError(
                    problem:
                        "“\(form)” is not a plural form of \(language.tag), which has \(known.joined(separator: ", "))"
                )
            }
            if Set(tag.forms).count < tag.forms.count {
                throw TemplateError(problem: "a form occurs twice in {{#\(tag.written)}}")
            }
            guard tag.forms.contains(PluralCategory.other.rawValue) else {
                throw TemplateError(
                    problem:
                        "{{#\(tag.written)}} needs {{#other}}…{{/other}} for all remaining numbers")
            }
        }
    }

    private var written: String {
        filters.map { "\($0.name)(" }.joined() + path + String(repeating: ")", count: filters.count)
    }

    /// Parses the text between the braces; `nil` for a comment.
    private init?(_ inside: String, isUnescaped: Bool) throws(TemplateError) {
        var text = inside[...]
        var kind = Kind.variable
        if !isUnescaped, let sigil = inside.first {
            switch sigil {
            case "!": return nil
            case "#": kind = .section
            case "^": kind = .inverted
            case "/": kind = .close
            case "&": break
            case ">", "<", "$", "=", "%", "*":
                throw TemplateError(
                    problem: "{{\(sigil) is not supported; use variables, sections and comments")
            default: text = inside[...]
            }
            if "#^/&".contains(sigil) { text = text.dropFirst() }
        }
        var filters: [Filter] = []
        var name = text.trimmingSpaces
        while let bracket = name.firstIndex(of: "("), name.last == ")" {
            filters.append(try TemplateTag.filter(name[..<bracket]))
            name = name[name.index(after: bracket)...].dropLast()
        }
        guard name == "." || TemplateTag.isPath(name) else {
            throw TemplateError(problem: "“\(inside)” is not a variable; write {{path.to.field}} or {{filter(path)}}")
        }
        self.init(kind: kind, path: String(name), filters: filters, depth: 0, isWhole: false)
    }

    private static func filter(_ name: Substring) throws(TemplateError) -> Filter {
        guard !name.hasPrefix("plural_"), let filter = Filter(name: String(name)) else {
            let hint = NearestMatch.of(String(name), among: Filter.names).map { "; did you mean “\($0)”?" }
            throw TemplateError(problem: "there is no filter “\(name)”" + (hint ?? ""))
        }
        return filter
    }

    /// Whether `text` is a dotted path of member names. A name has letters, digits, `_` and `-`.
    static func isPath(_ text: some StringProtocol) -> Bool {
        text.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { member in
            !member.isEmpty
                && member.utf8.allSatisfy { byte in
                    switch byte {
                    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"):
                        true
                    default: false
                    }
                }
        }
    }
}

extension Substring {
    fileprivate var trimmingSpaces: Substring {
        let start = drop { $0 == " " || $0 == "\t" }
        guard let last = start.lastIndex(where: { $0 != " " && $0 != "\t" }) else { return start }
        return start[...last]
    }
}
