/// The language of `condition`: `'a' in topics && !('b' in topics || 'c' in topics)`, at most five topics
/// (push-protocols B.3).
struct FCMCondition {
    static let maximumTopics = 5
    /// Deeper parentheses say nothing that five topics need.
    private static let maximumDepth = 16

    private var rest: Substring
    private var topics = 0

    /// What is wrong with a condition; `nil` when nothing is.
    static func problem(of text: String) -> String? {
        var parser = FCMCondition(rest: text[...])
        guard parser.expression(depth: 0), parser.rest.isEmpty else {
            return "the condition cannot be read at “\(parser.rest.prefix(20))”"
        }
        return parser.topics > maximumTopics
            ? "the condition names \(parser.topics) topics; at most \(maximumTopics) are allowed" : nil
    }

    private mutating func expression(depth: Int) -> Bool {
        guard depth <= Self.maximumDepth, term(depth: depth) else { return false }
        while take("&&") || take("||") {
            guard term(depth: depth) else { return false }
        }
        return true
    }

    private mutating func term(depth: Int) -> Bool {
        while take("!") {}
        if take("(") { return expression(depth: depth + 1) && take(")") }
        guard take("'"), let end = rest.firstIndex(of: "'"), FCMRules.isTopic(String(rest[..<end])) else {
            return false
        }
        rest = rest[end...].dropFirst()
        topics += 1
        return take("in") && take("topics")
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
