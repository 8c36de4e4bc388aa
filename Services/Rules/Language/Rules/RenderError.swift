/// An event does not have the values that a matching rule needs.
///
/// Permanent: the event is dead-lettered with the path, and none of its notifications is sent.
package struct RenderError: Error, Hashable, Sendable {
    package var rule: String
    /// The path in the rule: `say.body`, `to.users`.
    package var place: String
    package var problem: Problem

    package init(
        rule: String, place: String, problem: Problem
    ) {
        self.rule = rule
        self.place = place
        self.problem = problem
    }

    package enum Problem: Hashable, Sendable {
        /// The event has no value at this dotted path.
        case missing(path: String)
        /// The event has `null` at the path, and the rule needs a value.
        case null(path: String)
        /// The event's value at the path is not `expected`.
        case unsuitable(path: String, expected: String)
        /// The data of a direct notification is refused at the path.
        case refused(path: String, problem: String)
    }
}

extension RenderError: CustomStringConvertible {
    /// Contains paths, never values, because values can be personal data.
    package var description: String { "rule \(rule), \(place): \(problem)" }
}

extension RenderError.Problem: CustomStringConvertible {
    package var description: String {
        switch self {
        case .missing(let path): "\(path) is missing from the event"
        case .null(let path): "\(path) is null in the event"
        case .unsuitable(let path, let expected): "\(path) is not \(expected)"
        case .refused(let path, let problem): "\(path) is refused: \(problem)"
        }
    }
}
