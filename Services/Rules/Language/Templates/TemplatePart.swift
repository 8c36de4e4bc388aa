enum TemplatePart: Hashable, Sendable {
    case text(String)
    case variable(TemplateTag)
    case section(TemplateTag, [TemplatePart])
    case inverted(TemplateTag, [TemplatePart])
}

/// Parses a Mustache template (https://mustache.github.io/mustache.5.html).
///
/// Rules support variables, sections, inverted sections and comments. Partials, blocks, pragmas and changed delimiters
/// throw an error. A line with one section tag or comment and nothing else renders as nothing.
struct TemplateParser {
    /// All tags, in the order of the text.
    private(set) var tags: [TemplateTag] = []
    private(set) var parts: [TemplatePart] = []
    private var open: [Open] = []
    private var rest: Substring
    /// Whether only blanks precede in the current line.
    private var isLineBlank = true

    /// A section that is not closed yet.
    private struct Open {
        /// The index of its tag.
        var tag: Int
        var isPlural: Bool
        /// The parts before the section.
        var before: [TemplatePart]
    }

    init(_ text: String) throws(TemplateError) {
        rest = text[...]
        while let start = rest.firstRange(of: "{{") {
            let isTriple = rest[start.upperBound...].first == "{"
            let body = isTriple ? rest.index(after: start.upperBound) : start.upperBound
            guard let end = rest[body...].firstRange(of: isTriple ? "}}}" : "}}") else {
                throw TemplateError(problem: "{{ is never closed")
            }
            let before = rest[..<start.lowerBound]
            let inside = String(rest[body..<end.lowerBound])
            var tag = try TemplateTag(inside, isUnescaped: isTriple)
            tag?.isWhole = start.lowerBound == text.startIndex && end.upperBound == text.endIndex
            rest = rest[end.upperBound...]
            take(before, isVariable: tag?.kind == .variable)
            if let tag { try take(tag) }
        }
        append(rest)
        if let left = open.last {
            throw TemplateError(problem: "the section {{#\(tags[left.tag].written)}} is never closed")
        }
    }

    /// Appends the text before a tag. If the tag is alone on its line, drops the blanks before it and the rest of the
    /// line.
    private mutating func take(_ text: Substring, isVariable: Bool) {
        let lineStart = text.lastIndex(where: \.isLineEnd).map { text.index(after: $0) }
        let indentation = text[(lineStart ?? text.startIndex)...]
        let isFirst = (lineStart != nil || isLineBlank) && indentation.allSatisfy(\.isBlank)
        let after = rest.drop(while: \.isBlank)
        if isFirst, !isVariable, rest.isEmpty || after.first?.isLineEnd == true {
            append(text[..<indentation.startIndex])
            rest = after.dropFirst()
            isLineBlank = true
        } else {
            append(text)
            isLineBlank = false
        }
    }

    private mutating func append(_ text: Substring) {
        if !text.isEmpty { parts.append(.text(String(text))) }
    }

    private mutating func take(_ new: TemplateTag) throws(TemplateError) {
        var tag = new
        switch tag.kind {
        case .variable:
            try tag.checkNoPlural()
            tag.depth = depth
            parts.append(.variable(tag))
        case .section, .inverted:
            if let around = open.last, around.isPlural {
                tag.isForm = true
                guard tag.kind == .section, tag.filters.isEmpty else {
                    throw TemplateError(problem: "a plural section contains only forms, such as {{#other}}")
                }
                tags[around.tag].forms.append(tag.path)
            }
            if tag.kind == .inverted || !tag.isPlural { try tag.checkNoPlural() }
            tag.depth = depth
            open.append(Open(tag: tags.count, isPlural: tag.isPlural, before: parts))
            parts = []
        case .close:
            guard let closed = open.popLast(), tags[closed.tag].written == tag.written else {
                throw TemplateError(problem: "{{/\(tag.written)}} closes a section that is not open")
            }
            var opening = tags[closed.tag]
            if closed.isPlural {
                opening.filters[0] = .plural(Set(opening.forms.compactMap(PluralCategory.init(rawValue:))))
            }
            parts =
                closed.before + [opening.kind == .inverted ? .inverted(opening, parts) : .section(opening, parts)]
            (tag.isForm, tag.forms, tag.depth) = (opening.isForm, opening.forms, depth)
        }
        tags.append(tag)
    }

    /// The number of open sections; plural sections and their forms do not count.
    private var depth: Int { open.count { !$0.isPlural && !tags[$0.tag].isForm } }
}

extension Character {
    fileprivate var isBlank: Bool { self == " " || self == "\t" }
    fileprivate var isLineEnd: Bool { self == "\n" || self == "\r\n" }
}
