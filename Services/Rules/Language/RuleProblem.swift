/// One error in a rule file, with its place.
struct RuleProblem: Hashable, Sendable, CustomStringConvertible {
    /// The file's name, without its folder.
    var file: String
    /// The line number; the first line is 1.
    var line: Int
    /// The dotted path of the key; empty for the file as a whole.
    var key: String
    var problem: String

    var description: String {
        key.isEmpty ? "\(file):\(line): \(problem)" : "\(file):\(line): \(key): \(problem)"
    }
}

/// All errors in one or more rule files. A set of files with an error is rejected as a whole.
struct RuleFileError: Error, Sendable, CustomStringConvertible {
    var problems: [RuleProblem]

    var description: String {
        let count = problems.count == 1 ? "1 error" : "\(problems.count) errors"
        return (["the rule files have \(count):"] + problems.map { "  \($0)" }).joined(separator: "\n")
    }
}
