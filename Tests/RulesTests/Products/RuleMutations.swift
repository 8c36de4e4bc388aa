import Yams

/// Every change of one value, and every removal of one entry, in a rule file.
struct RuleMutations {
    struct Mutation: Sendable {
        /// The keys down to the changed place: `rules.career.how.sound`.
        var path: String
        var change: String
        /// The whole file with this change.
        var text: String
    }

    private(set) var all: [Mutation] = []

    /// - Parameter isExplained: whether a path is skipped, with everything under it.
    init(_ text: String, isExplained: (String) -> Bool) throws {
        guard let root = try Yams.compose(yaml: text) else { return }
        try visit(root, "", isExplained) { $0 }
    }

    /// The file written again without a change. Its meaning must not change.
    static func unchanged(_ text: String) throws -> String {
        try Yams.compose(yaml: text).map { try Yams.serialize(node: $0) } ?? ""
    }

    private mutating func visit(
        _ node: Node, _ path: String, _ isExplained: (String) -> Bool, _ rebuild: (Node) -> Node
    ) throws {
        guard !isExplained(path) else { return }
        switch node {
        case .scalar(let scalar):
            var changed = scalar
            changed.string = Self.other(scalar.string)
            try add(path, "\(scalar.string) → \(changed.string)", rebuild(.scalar(changed)))
        case .mapping(let mapping):
            for (key, value) in mapping {
                let place = path.isEmpty ? key.string ?? "" : "\(path).\(key.string ?? "")"
                guard !isExplained(place) else { continue }
                var without = mapping
                without[key] = nil
                try add(place, "removed", rebuild(.mapping(without)))
                try visit(value, place, isExplained) { changed in
                    var copy = mapping
                    copy[key] = changed
                    return rebuild(.mapping(copy))
                }
            }
        case .sequence(let sequence):
            for index in sequence.indices {
                let place = "\(path).\(index)"
                guard !isExplained(place) else { continue }
                var without = sequence
                without.remove(at: index)
                try add(place, "removed", rebuild(.sequence(without)))
                try visit(sequence[index], place, isExplained) { changed in
                    var copy = sequence
                    copy[index] = changed
                    return rebuild(.sequence(copy))
                }
            }
        case .alias: break
        }
    }

    private mutating func add(_ path: String, _ change: String, _ root: Node) throws {
        all.append(Mutation(path: path, change: change, text: try Yams.serialize(node: root)))
    }

    private static let others = [
        "interactive": "bulk", "bulk": "interactive", "hold": "silent", "bypass": "hold", "inbox": "hold",
        "app": "thread",
        "generic": "id-only", "told": "counted", "counted": "never", "silent": "alert", "live-activity": "alert",
        "time-sensitive": "active", "default": "other", "unread": "1", "true": "false", "false": "true",
        "start": "update", "update": "end", "end": "update", "hider": "seeker", "seeker": "hider", "en": "de",
        "es": "fr",
        "Europe/Madrid": "Europe/London",
    ]

    /// A different value, valid if possible: another keyword for a keyword, the next number for a number, a longer text
    /// for a text.
    private static func other(_ text: String) -> String {
        if let other = others[text] { return other }
        if let number = Int(text) { return "\(number + 1)" }
        if let unit = text.last, "smhd".contains(unit), let number = Int(text.dropLast()) {
            return "\(number + 1)\(unit)"
        }
        if text.count == 5, text.dropFirst(2).first == ":", let minute = Int(text.suffix(2)) {
            return "\(text.prefix(3))\(minute < 9 ? "0" : "")\((minute + 1) % 60)"
        }
        return text + "x"
    }
}
