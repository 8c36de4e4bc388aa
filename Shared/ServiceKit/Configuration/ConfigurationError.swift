/// All problems of the configuration at the start, one line each. ``ServiceMain`` prints them and exits with 78
/// (`EX_CONFIG`).
///
/// Services throw it for their own configuration too, such as rule sets. No line contains a secret.
package struct ConfigurationError: Error, Hashable, Sendable, CustomStringConvertible {
    /// Each with its location and the next step.
    package let problems: [String]

    package init(_ problems: [String]) { self.problems = problems }
    package init(_ problem: String) { self.problems = [problem] }

    package var description: String { problems.joined(separator: "\n") }
}
