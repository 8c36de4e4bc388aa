/// One mistake in a rule file, for the person who wrote it.
struct RuleProblem: Hashable, Sendable, CustomStringConvertible {
    /// The file's name, without its folder.
    var file: String
    /// From 1.
    var line: Int
    /// The dotted path of the key; empty for the file as a whole.
    var key: String
    var problem: String

    var description: String {
        key.isEmpty ? "\(file):\(line): \(problem)" : "\(file):\(line): \(key): \(problem)"
    }
}

/// Every mistake in one or more rule files. Nothing of a set of files is taken while one of them is wrong.
struct RuleFileError: Error, Sendable, CustomStringConvertible {
    var problems: [RuleProblem]

    var description: String {
        let count = problems.count == 1 ? "1 mistake" : "\(problems.count) mistakes"
        return (["the rule files have \(count):"] + problems.map { "  \($0)" }).joined(separator: "\n")
    }
}
