/// Why a rule cannot say what it should about an event: the event is not as the rule expects it. Permanent, so the event
/// is dead-lettered with the path, and nothing of it is sent.
struct RenderError: Error, Hashable, Sendable {
    /// The rule's name.
    var rule: String
    /// Where in the rule: `say.body`, `to.users`.
    var place: String
    var problem: Problem

    enum Problem: Hashable, Sendable {
        /// The event has nothing at this dotted path.
        case missing(path: String)
        /// The event has `null` where there must be something to show.
        case null(path: String)
        /// The event has something else than `expected` there.
        case unsuitable(path: String, expected: String)

        /// The dotted path in the event's data.
        var path: String {
            switch self {
            case .missing(let path), .null(let path), .unsuitable(let path, _): path
            }
        }
    }
}

extension RenderError: CustomStringConvertible {
    /// Names paths, never values: those may be personal.
    var description: String { "rule \(rule), \(place): \(problem)" }
}

extension RenderError.Problem: CustomStringConvertible {
    var description: String {
        switch self {
        case .missing(let path): "\(path) is missing from the event"
        case .null(let path): "\(path) is null in the event"
        case .unsuitable(let path, let expected): "\(path) is not \(expected)"
        }
    }
}
