import PushProtocol
import Yams

/// A node of a rule file, and the keys that lead to it.
struct Field {
    let node: Node
    let path: String
    let line: Int
}

/// Reads the nodes of one rule file strictly. Every method reports what it does not like and answers `nil`, so that one
/// reading finds every mistake. Made and used by one call of ``RuleFile/parse(_:file:)``.
final class RuleFileReader {
    /// What an author forgets with a text that begins with a variable: to YAML, `{{` opens two mappings.
    static let unquoted = "a text that begins with {{ must be quoted"

    let file: String
    private(set) var problems: [RuleProblem] = []
    /// The keys that each mapping may have, by its path: what the JSON Schema for editors is held against.
    private(set) var tables: [String: [String]] = [:]
    /// The events that the file describes, by type, once it was read.
    var catalog: [String: EventShape] = [:]
    /// That of the words that are read.
    var language = Language.english
    /// The line of every field that was looked at, for what is found wrong later.
    private var lines: [String: Int] = [:]

    init(file: String) { self.file = file }

    func report(_ field: Field, _ problem: String) {
        report(line: field.line, key: field.path, problem)
    }

    func report(line: Int, key: String, _ problem: String) {
        problems.append(RuleProblem(file: file, line: line, key: key, problem: problem))
    }

    /// The line of the field at `path`, or of the nearest one around it.
    func line(of path: String) -> Int {
        var path = path[...]
        while true {
            if let line = lines[String(path)] { return line }
            guard let dot = path.lastIndex(of: ".") else { return 1 }
            path = path[..<dot]
        }
    }

    func field(_ node: Node, _ path: String, line: Int) -> Field {
        lines[path] = line
        return Field(node: node, path: path, line: line)
    }
}

// MARK: - Mappings

extension RuleFileReader {
    /// The members of a mapping whose keys are the author's own names, in the order of the file.
    func members(_ field: Field) -> [(name: String, value: Field)]? {
        guard case .mapping(let mapping) = field.node else {
            report(field, "expected keys with values, not \(field.node.kind)")
            return nil
        }
        return mapping.compactMap { key, value in
            guard case .scalar(let scalar) = key else {
                report(field, field.node.isBareTemplate ? RuleFileReader.unquoted : "a key must be a word")
                return nil
            }
            let path = field.path.isEmpty ? scalar.string : "\(field.path).\(scalar.string)"
            return (scalar.string, self.field(value, path, line: key.mark?.line ?? field.line))
        }
    }

    /// The members of a mapping that may have these keys and no others.
    func table(_ field: Field, keys: [String], required: [String] = []) -> [String: Field]? {
        tables[field.path] = keys
        guard let members = members(field) else { return nil }
        var present = Set(members.map(\.name))
        for (name, value) in members where !keys.contains(name) {
            let meant = Suggestion.nearest(to: name, in: keys)
            let hint = meant.map { "did you mean “\($0)”?" } ?? "the keys here are \(keys.joined(separator: ", "))"
            report(value, "unknown key; \(hint)")
            // What was misspelt is not missing as well.
            if let meant { present.insert(meant) }
        }
        for name in required where !present.contains(name) { report(field, "“\(name)” is missing") }
        return Dictionary(members.map { ($0.name, $0.value) }) { first, _ in first }
    }
}

// MARK: - Lists and scalars

extension RuleFileReader {
    func list(_ field: Field) -> [Field]? {
        guard case .sequence(let sequence) = field.node else {
            report(field, "expected a list, not \(field.node.kind)")
            return nil
        }
        return sequence.enumerated().map { index, node in
            self.field(node, "\(field.path).\(index)", line: node.mark?.line ?? field.line)
        }
    }

    /// A list, or a single value standing for a list of itself.
    func oneOrMore(_ field: Field) -> [Field]? {
        guard case .sequence = field.node else { return [field] }
        guard let elements = list(field) else { return nil }
        guard !elements.isEmpty else {
            report(field, "the list is empty")
            return nil
        }
        return elements
    }

    func scalar(_ field: Field) -> JSONValue? {
        guard case .scalar(let scalar) = field.node else {
            report(field, "expected a single value, not \(field.node.kind)")
            return nil
        }
        return ScalarValue.json(scalar)
    }

    func text(_ field: Field) -> String? {
        guard let value = scalar(field) else { return nil }
        guard case .string(let text) = value else {
            report(field, "expected a text, not \(value.kind); quotes make it one")
            return nil
        }
        guard !text.isEmpty else {
            report(field, "the text is empty")
            return nil
        }
        return text
    }

    func choice<Word: RawRepresentable & CaseIterable>(_ field: Field) -> Word? where Word.RawValue == String {
        guard let text = text(field) else { return nil }
        if let word = Word(rawValue: text) { return word }
        let words = Word.allCases.map(\.rawValue)
        let hint = Suggestion.nearest(to: text, in: words).map { "; did you mean “\($0)”?" } ?? ""
        report(field, "“\(text)” is not one of \(words.joined(separator: ", "))\(hint)")
        return nil
    }

    /// A whole number with a unit: `90s`, `30m`, `24h`, `7d`.
    func duration(_ field: Field) -> Duration? {
        guard let value = scalar(field) else { return nil }
        let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86400]
        guard case .string(let text) = value, let unit = text.last.flatMap({ units[$0] }),
            let count = Int64(text.dropLast()), (1...1_000_000).contains(count)
        else {
            report(field, "expected a number of s, m, h or d, such as 90s, 30m, 24h or 7d")
            return nil
        }
        return .seconds(count * unit)
    }

    /// Any JSON value; objects and lists may be written in YAML's own way.
    func json(_ field: Field) -> JSONValue? {
        switch field.node {
        case .scalar, .alias: return scalar(field)
        case .sequence:
            guard let elements = list(field) else { return nil }
            let values = elements.compactMap { json($0) }
            return values.count == elements.count ? .array(values) : nil
        case .mapping:
            guard let members = members(field) else { return nil }
            let values = members.compactMap { member in json(member.value).map { (member.name, $0) } }
            guard values.count == members.count else { return nil }
            return .object(Dictionary(values) { first, _ in first })
        }
    }
}
