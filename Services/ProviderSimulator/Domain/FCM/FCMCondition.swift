/// A topic `condition`: `'a' in topics && !('b' in topics || 'c' in topics)`, with at most five topics (Firebase: Send
/// messages to topics).
///
/// Parentheses bind first. `&&` and `||` have equal precedence and associate to the left.
struct FCMCondition: Hashable, Sendable {
    static let maximumTopics = 5

    private indirect enum Expression: Hashable, Sendable {
        case topic(String)
        case not(Expression)
        case both(Expression, Expression)
        case either(Expression, Expression)
    }

    struct Problem: Error, Hashable, CustomStringConvertible { let description: String }

    private let expression: Expression

    static func read(_ text: String) -> Result<FCMCondition, Problem> {
        var parser = Parser(rest: text[...])
        guard let expression = parser.expression(depth: 0), parser.rest.isEmpty else {
            return .failure(Problem(description: "the condition is invalid at “\(parser.rest.prefix(20))”"))
        }
        guard parser.topics <= maximumTopics else {
            return .failure(
                Problem(
                    description: "the condition names \(parser.topics) topics; at most \(maximumTopics) are allowed"))
        }
        return .success(FCMCondition(expression: expression))
    }

    /// Whether it holds for a phone subscribed to `topics`.
    func holds(for topics: Set<String>) -> Bool { Self.holds(expression, topics) }

    private static func holds(_ expression: Expression, _ topics: Set<String>) -> Bool {
        switch expression {
        case .topic(let name): topics.contains(name)
        case .not(let inner): !holds(inner, topics)
        case .both(let left, let right): holds(left, topics) && holds(right, topics)
        case .either(let left, let right): holds(left, topics) || holds(right, topics)
        }
    }

    private struct Parser {
        /// Five topics need no deeper nesting.
        static let maximumDepth = 16

        var rest: Substring
        var topics = 0

        mutating func expression(depth: Int) -> Expression? {
            guard depth <= Self.maximumDepth, var left = term(depth: depth) else { return nil }
            while true {
                if take("&&") {
                    guard let right = term(depth: depth) else { return nil }
                    left = .both(left, right)
                } else if take("||") {
                    guard let right = term(depth: depth) else { return nil }
                    left = .either(left, right)
                } else {
                    return left
                }
            }
        }

        private mutating func term(depth: Int) -> Expression? {
            var isNegated = false
            while take("!") { isNegated.toggle() }
            guard let inner = take("(") ? group(depth: depth) : topic() else { return nil }
            return isNegated ? .not(inner) : inner
        }

        private mutating func group(depth: Int) -> Expression? {
            guard let inner = expression(depth: depth + 1), take(")") else { return nil }
            return inner
        }

        private mutating func topic() -> Expression? {
            guard take("'"), let end = rest.firstIndex(of: "'"), FCMRules.isTopic(String(rest[..<end])) else {
                return nil
            }
            let name = String(rest[..<end])
            rest = rest[end...].dropFirst()
            topics += 1
            return take("in") && take("topics") ? .topic(name) : nil
        }

        private mutating func take(_ word: String) -> Bool {
            let trimmed = rest.drop { $0 == " " }
            guard trimmed.hasPrefix(word) else {
                if trimmed.isEmpty { rest = trimmed }
                return false
            }
            rest = trimmed.dropFirst(word.count)
            return true
        }
    }
}
