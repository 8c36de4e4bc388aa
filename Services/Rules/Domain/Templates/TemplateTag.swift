/// A tag of a Mustache template: `{{path}}`, `{{filter(path)}}`, `{{#path}}`, `{{^path}}` or `{{/path}}`.
struct TemplateTag: Hashable, Sendable {
    enum Kind: Hashable, Sendable { case variable, section, inverted, close }
    var kind: Kind
    /// The dotted path it names; `.` is the current element of a list.
    var path: String
    /// Outermost first, as written.
    var filters: [Filter]
    /// How many sections it stands in.
    var depth: Int
    /// Whether the whole template is this one tag.
    var isWhole: Bool
}

/// Why a text is not a template that rules take.
struct TemplateError: Error, Hashable {
    var problem: String
}

extension TemplateTag {
    /// The tags of `text`.
    ///
    /// Rules take the part of Mustache that says where each value comes from: variables, sections, inverted sections and
    /// comments. Partials, blocks, pragmas and changed delimiters are refused here, before the renderer sees them.
    static func scan(_ text: String) throws(TemplateError) -> [TemplateTag] {
        var tags: [TemplateTag] = []
        var open: [String] = []
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
            switch tag.kind {
            case .variable: tag.depth = open.count
            case .section, .inverted:
                tag.depth = open.count
                open.append(written)
            case .close:
                guard open.popLast() == written else {
                    throw TemplateError(problem: "{{/\(written)}} closes a section that is not open")
                }
                tag.depth = open.count
            }
            tags.append(tag)
        }
        if let left = open.last { throw TemplateError(problem: "the section {{#\(left)}} is never closed") }
        return tags
    }

    private var written: String {
        filters.map { "\($0.name)(" }.joined() + path + String(repeating: ")", count: filters.count)
    }

    /// Reads what stands between the braces; `nil` for a comment.
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
                    problem: "{{\(sigil) is not part of the rule language: it has variables, sections and comments")
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
            let hint = Suggestion.nearest(to: String(name), in: Filter.names).map { "; did you mean “\($0)”?" }
            throw TemplateError(problem: "there is no filter “\(name)”" + (hint ?? ""))
        }
        return filter
    }

    /// Whether `text` is member names joined by dots, each of letters, digits, `_` and `-`.
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
