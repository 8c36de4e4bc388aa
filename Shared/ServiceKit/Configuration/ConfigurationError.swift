/// What a person got wrong before the process could start: everything at once, one line each, so that it is put right
/// in one go. ``ServiceMain`` prints the lines and exits with 78 (`EX_CONFIG`).
///
/// A service throws it for configuration of its own, such as rule sets. No line holds a secret.
package struct ConfigurationError: Error, Hashable, Sendable, CustomStringConvertible {
    /// Each says what, where and what to do.
    package let problems: [String]

    package init(_ problems: [String]) { self.problems = problems }
    package init(_ problem: String) { self.problems = [problem] }

    package var description: String { problems.joined(separator: "\n") }
}
