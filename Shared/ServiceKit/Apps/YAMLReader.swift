import FoundationEssentials
import Yams

/// Reads a YAML document strictly and collects every problem with the line it is on, so that a person can mend a file in
/// one go. Each method reports what is wrong and answers with nothing; the caller looks at ``problems`` at the end.
struct YAMLReader {
    /// A node and the dotted path that leads to it.
    struct Entry {
        let node: Node
        let path: String
        let line: Int

        var isNull: Bool { node.null != nil }
    }

    let path: String
    /// What the document's files are for that have to be there.
    private let files: AppCatalog.Files
    private(set) var problems: [String] = []

    init(path: String, using files: AppCatalog.Files) {
        self.path = path
        self.files = files
    }

    mutating func report(_ entry: Entry, _ problem: String) {
        problems.append("\(path):\(entry.line): \(entry.path.isEmpty ? "the document" : entry.path): \(problem)")
    }

    /// The document's root, or a report of why there is none.
    mutating func compose(_ text: String) -> Entry? {
        do {
            guard let root = try Yams.compose(yaml: text) else {
                problems.append("\(path):1: is empty")
                return nil
            }
            guard root.isWalkable() else {
                problems.append("\(path):1: its aliases expand to more than \(Node.maximumNodes) nodes")
                return nil
            }
            return Entry(node: root, path: "", line: 1)
        } catch let error as YamlError {
            problems.append("\(path):\(error.line): \(error.problem)")
        } catch {
            problems.append("\(path):1: is not YAML: \(error)")
        }
        return nil
    }

    /// The members of a mapping with any keys, in the order of the file.
    mutating func entries(of entry: Entry) -> [(name: String, entry: Entry)] {
        guard case .mapping(let mapping) = entry.node else {
            report(entry, "expected keys with values")
            return []
        }
        return mapping.map { key, value in
            let name = key.scalar?.string ?? "?"
            let path = entry.path.isEmpty ? name : "\(entry.path).\(name)"
            return (name, Entry(node: value, path: path, line: key.mark?.line ?? entry.line))
        }
    }

    /// The members of a mapping that has no other keys than `known`.
    mutating func members(of entry: Entry, known: [String], required: [String]) -> [String: Entry] {
        let entries = entries(of: entry)
        for (name, member) in entries where !known.contains(name) {
            let hint = NearestName.of(name, among: known).map { "did you mean “\($0)”?" }
            report(member, "unknown key; \(hint ?? "known here: \(known.joined(separator: ", "))")")
        }
        if case .mapping = entry.node {
            for name in required where !entries.contains(where: { $0.name == name }) {
                report(entry, "“\(name)” is missing")
            }
        }
        return Dictionary(entries) { first, _ in first }
    }

    /// Whether a mapping has the key `name`.
    func has(_ entry: Entry, _ name: String) -> Bool {
        guard case .mapping(let mapping) = entry.node else { return false }
        return mapping.contains { $0.key.scalar?.string == name }
    }

    /// The elements of a sequence.
    mutating func elements(of entry: Entry) -> [Entry] {
        guard case .sequence(let sequence) = entry.node else {
            report(entry, "expected a list")
            return []
        }
        return sequence.enumerated().map { index, node in
            Entry(node: node, path: "\(entry.path)[\(index)]", line: node.mark?.line ?? entry.line)
        }
    }

    /// A text of at least one character. Numbers and words YAML has a meaning for must be quoted to be one.
    mutating func text(_ entry: Entry?) -> String? {
        guard let entry else { return nil }
        guard case .scalar(let scalar) = entry.node, !entry.isNull, !scalar.string.isEmpty else {
            report(entry, "expected a text")
            return nil
        }
        return scalar.string
    }

    /// One of an enumeration's words.
    mutating func choice<Word: RawRepresentable>(_ entry: Entry?, of words: [Word]) -> Word?
    where Word.RawValue == String {
        guard let entry, let text = text(entry) else { return nil }
        if let word = Word(rawValue: text) { return word }
        report(entry, "“\(text)” is not one of \(words.map(\.rawValue).joined(separator: ", "))")
        return nil
    }

    mutating func duration(_ entry: Entry?, in range: ClosedRange<Duration>) -> Duration? {
        guard let entry, let text = text(entry) else { return nil }
        if let duration = SettingValue.duration(text), range.contains(duration) { return duration }
        report(entry, "“\(text)” is not \(ConfigurationKey.Kind.duration(range).expectation)")
        return nil
    }

    /// The path of a file; a relative one starts at the document's folder.
    ///
    /// - Parameter use: what it is for. It has to be there and readable where the process uses such files.
    mutating func file(_ entry: Entry?, for use: AppCatalog.Files) -> String? {
        guard let entry, let text = text(entry) else { return nil }
        let folder = path.lastIndex(of: "/").map { path[...$0] } ?? ""
        let file = text.hasPrefix("/") ? text : folder + text
        if !files.contains(use) || SettingValue.isReadable(file, directory: false) { return file }
        report(entry, "\(file) is not a file that exists and can be read")
        return nil
    }
}

extension YamlError {
    fileprivate var line: Int {
        switch self {
        case .scanner(_, _, let mark, _), .parser(_, _, let mark, _), .composer(_, _, let mark, _): mark.line
        case .duplicatedKeysInMapping(_, let context): context.mark.line
        default: 1
        }
    }

    fileprivate var problem: String {
        switch self {
        case .scanner(_, let problem, _, _), .parser(_, let problem, _, _), .composer(_, let problem, _, _):
            "is not YAML: \(problem)"
        case .duplicatedKeysInMapping(let names, _):
            "\(names.joined(separator: ", ")): stands here more than once"
        default: "is not YAML: \(self)"
        }
    }
}
