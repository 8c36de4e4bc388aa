import Primitives
import PushProtocol
import Yams

/// A node of a rule file, with the dotted path of its keys and its line.
struct Field {
    let node: Node
    let path: String
    let line: Int
}

/// Reads the nodes of one rule file strictly.
///
/// Every method reports an error and returns `nil`, so that one pass finds all errors. One call of
/// ``RuleFile/parse(_:file:)`` creates and uses a reader.
package final class RuleFileReader {
    /// The error for an unquoted text that begins with a variable. YAML reads `{{` as two mappings.
    static let unquoted = "a text that begins with {{ must be quoted"

    let file: String
    private(set) var problems: [RuleProblem] = []
    /// The allowed keys of each mapping, by its path. A test compares them with the JSON Schema for editors.
    private(set) var tables: [String: [String]] = [:]
    /// The event types of the file, after `events` was read.
    var catalog: [String: EventShape] = [:]
    /// The language of the texts that are being read.
    var language = Language.english
    /// The place in the file of each rule that an entry under `live` or a variant becomes, and of keys of variants:
    /// `rules.delivery-start` is `live.delivery.start`.
    var places: [String: String] = [:]
    /// The line of every field read so far, for errors that are found later.
    private var lines: [String: Int] = [:]

    init(file: String) { self.file = file }

    func report(_ field: Field, _ problem: String) {
        report(line: field.line, key: field.path, problem)
    }

    func report(line: Int, key: String, _ problem: String) {
        let place = place(of: key)
        // Several rules have the same words of an entry under `live`, or of a rule with variants.
        let isMade = place != key || key.hasPrefix("live.")
        if isMade, problems.contains(where: { $0.line == line && $0.problem == problem }) { return }
        problems.append(RuleProblem(file: file, line: line, key: place, problem: problem))
    }

    /// Returns the place in the file of a key, which can be in a rule that the reader made.
    func place(of key: String) -> String {
        let parts = places.filter { key == $0.key || key.hasPrefix("\($0.key).") }
        guard let (part, place) = parts.max(by: { $0.key.utf8.count < $1.key.utf8.count }) else { return key }
        let rest = key.dropFirst(part.count)
        // An entry under `live` has the keys of the condition at its own level.
        return place + (place.hasPrefix("live.") && rest.hasPrefix(".when.") ? rest.dropFirst(5) : rest)
    }

    /// Returns the line of the field at `path`, or of its nearest enclosing field.
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
    /// Returns the members of a mapping that allows any keys, in file order.
    func members(_ field: Field) -> [(name: String, value: Field)]? {
        guard case .mapping(let mapping) = field.node else {
            report(field, "expected keys with values, not \(field.node.kind)")
            return nil
        }
        return mapping.compactMap { key, value in
            guard case .scalar(let scalar) = key else {
                report(field, field.node.isBareTemplate ? RuleFileReader.unquoted : "a key must be a text")
                return nil
            }
            let path = field.path.isEmpty ? scalar.string : "\(field.path).\(scalar.string)"
            return (scalar.string, self.field(value, path, line: key.mark?.line ?? field.line))
        }
    }

    /// Returns the members of a mapping that allows only these keys.
    func table(_ field: Field, keys: [String], required: [String] = []) -> [String: Field]? {
        tables[field.path] = keys
        guard let members = members(field) else { return nil }
        var present = Set(members.map(\.name))
        for (name, value) in members where !keys.contains(name) {
            let meant = NearestMatch.of(name, among: keys)
            let hint = meant.map { "did you mean “\($0)”?" } ?? "the keys here are \(keys.joined(separator: ", "))"
            report(value, "unknown key; \(hint)")
            // A misspelt key is not reported as missing too.
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

    /// Returns the elements of a list. A single value counts as a list with one element.
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
            report(field, "expected a text, not \(value.kind); put it in quotes")
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
        let hint = NearestMatch.of(text, among: words).map { "; did you mean “\($0)”?" } ?? ""
        report(field, "“\(text)” is not one of \(words.joined(separator: ", "))\(hint)")
        return nil
    }

    /// Reads a whole number with a unit: `90s`, `30m`, `24h`, `7d`.
    func duration(_ field: Field) -> Duration? {
        guard let value = scalar(field) else { return nil }
        guard case .string(let text) = value, let duration = Duration(withUnit: text) else {
            report(field, "expected a duration such as 90s, 30m, 24h or 7d")
            return nil
        }
        return duration
    }

    /// Reads any JSON value, in JSON or YAML syntax.
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

extension Duration {
    /// Reads a whole number with a unit: `90s`, `30m`, `24h`, `7d`; `nil` for other texts.
    package init?(withUnit text: some StringProtocol) {
        let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86400]
        guard let unit = text.last.flatMap({ units[$0] }), let count = Int64(text.dropLast()),
            (1...1_000_000).contains(count)
        else { return nil }
        self = .seconds(count * unit)
    }
}
