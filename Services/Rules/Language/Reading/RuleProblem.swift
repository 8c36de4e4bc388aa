/// One error in a rule file, with its place.
package struct RuleProblem: Hashable, Sendable, CustomStringConvertible {
    /// The file's name, without its folder.
    package var file: String
    /// The line number; the first line is 1.
    package var line: Int
    /// The dotted path of the key; empty for the file as a whole.
    package var key: String
    package var problem: String

    package init(
        file: String, line: Int, key: String, problem: String
    ) {
        self.file = file
        self.line = line
        self.key = key
        self.problem = problem
    }

    package var description: String {
        key.isEmpty ? "\(file):\(line): \(problem)" : "\(file):\(line): \(key): \(problem)"
    }
}

/// All errors in one or more rule files. A set of files with an error is rejected as a whole.
package struct RuleFileError: Error, Sendable, CustomStringConvertible {
    package var problems: [RuleProblem]

    package init(
        problems: [RuleProblem]
    ) {
        self.problems = problems
    }

    package var description: String {
        let count = problems.count == 1 ? "1 error" : "\(problems.count) errors"
        return (["the rule files have \(count):"] + problems.map { "  \($0)" }).joined(separator: "\n")
    }
}
