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
    var isPlural: Bool { filters.first?.isPlural ?? false }

    func checkNoPlural() throws(TemplateError) {
        if filters.contains(where: \.isPlural) {
            throw TemplateError(
                problem:
                    "“plural” needs a section: {{#plural(\(path))}}{{#one}}…{{/one}}{{#other}}…{{/other}}{{/plural(\(path))}}"
            )
        }
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

    var written: String {
        filters.map { "\($0.name)(" }.joined() + path + String(repeating: ")", count: filters.count)
    }

    /// Parses the text between the braces; `nil` for a comment.
    init?(_ inside: String, isUnescaped: Bool) throws(TemplateError) {
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
        guard let filter = Filter(name: String(name)) else {
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
