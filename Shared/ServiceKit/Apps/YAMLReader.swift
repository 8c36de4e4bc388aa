import FoundationEssentials
import Primitives
import StrictYAML
import Yams

/// Reads a YAML document strictly and collects all problems with their lines. A method that reports a problem returns
/// nil or an empty value; the caller checks ``problems`` at the end.
struct YAMLReader {
    /// A node with its dotted path and line.
    struct LocatedNode {
        let node: Node
        let path: String
        let line: Int

        var isNull: Bool { node.null != nil }
    }

    let path: String
    /// The kinds of files that must exist.
    private let files: AppCatalog.Files
    private(set) var problems: [String] = []

    init(path: String, using files: AppCatalog.Files) {
        self.path = path
        self.files = files
    }

    mutating func report(_ entry: LocatedNode, _ problem: String) {
        problems.append("\(path):\(entry.line): \(entry.path.isEmpty ? "the document" : entry.path): \(problem)")
    }

    /// Parses a document and returns its root; reports a problem and returns nil if it is malformed.
    mutating func compose(_ text: String) -> LocatedNode? {
        do {
            guard let root = try Yams.compose(yaml: text) else {
                problems.append("\(path):1: is empty")
                return nil
            }
            guard root.isWalkable() else {
                problems.append("\(path):1: its aliases expand to more than \(Node.maximumNodes) nodes")
                return nil
            }
            return LocatedNode(node: root, path: "", line: 1)
        } catch let error as YamlError {
            problems.append("\(path):\(error.line): \(error.problem)")
        } catch {
            problems.append("\(path):1: is not YAML: \(error)")
        }
        return nil
    }

    /// Returns the members of a mapping with any keys, in the order of the file.
    mutating func entries(of entry: LocatedNode) -> [(name: String, entry: LocatedNode)] {
        guard case .mapping(let mapping) = entry.node else {
            report(entry, "expected keys with values")
            return []
        }
        return mapping.map { key, value in
            let name = key.scalar?.string ?? "?"
            let path = entry.path.isEmpty ? name : "\(entry.path).\(name)"
            return (name, LocatedNode(node: value, path: path, line: key.mark?.line ?? entry.line))
        }
    }

    /// Returns the members of a mapping; reports keys other than `known` and missing `required` ones.
    mutating func members(of entry: LocatedNode, known: [String], required: [String]) -> [String: LocatedNode] {
        let entries = entries(of: entry)
        for (name, member) in entries where !known.contains(name) {
            let hint = NearestMatch.of(name, among: known, .wide).map { "did you mean “\($0)”?" }
            report(member, "unknown key; \(hint ?? "known keys: \(known.joined(separator: ", "))")")
        }
        if case .mapping = entry.node {
            for name in required where !entries.contains(where: { $0.name == name }) {
                report(entry, "“\(name)” is missing")
            }
        }
        return Dictionary(entries) { first, _ in first }
    }

    func has(_ entry: LocatedNode, _ name: String) -> Bool {
        guard case .mapping(let mapping) = entry.node else { return false }
        return mapping.contains { $0.key.scalar?.string == name }
    }

    mutating func elements(of entry: LocatedNode) -> [LocatedNode] {
        guard case .sequence(let sequence) = entry.node else {
            report(entry, "expected a list")
            return []
        }
        return sequence.enumerated().map { index, node in
            LocatedNode(node: node, path: "\(entry.path)[\(index)]", line: node.mark?.line ?? entry.line)
        }
    }

    /// Reads a non-empty scalar as text.
    mutating func text(_ entry: LocatedNode?) -> String? {
        guard let entry else { return nil }
        guard case .scalar(let scalar) = entry.node, !entry.isNull, !scalar.string.isEmpty else {
            report(entry, "expected a text")
            return nil
        }
        return scalar.string
    }

    /// Reads one of an enumeration's raw values.
    mutating func choice<Choice: RawRepresentable>(_ entry: LocatedNode?, of choices: [Choice]) -> Choice?
    where Choice.RawValue == String {
        guard let entry, let text = text(entry) else { return nil }
        if let choice = Choice(rawValue: text) { return choice }
        report(entry, "“\(text)” is not one of \(choices.map(\.rawValue).joined(separator: ", "))")
        return nil
    }

    mutating func duration(_ entry: LocatedNode?, in range: ClosedRange<Duration>) -> Duration? {
        guard let entry, let text = text(entry) else { return nil }
        if let duration = SettingValue.duration(text), range.contains(duration) { return duration }
        report(entry, "“\(text)” is not \(ConfigurationKey.Kind.duration(range).expectation)")
        return nil
    }

    /// Reads the path of a file; a relative path starts at the document's folder.
    ///
    /// - Parameter use: the file's kind. The file must be readable if the process uses this kind.
    mutating func file(_ entry: LocatedNode?, for use: AppCatalog.Files) -> String? {
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
            "\(names.joined(separator: ", ")): occurs more than once"
        default: "is not YAML: \(self)"
        }
    }
}
