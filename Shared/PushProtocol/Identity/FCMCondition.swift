/// An FCM condition over topics: `'a' in topics && !('b' in topics)` (Firebase: Send messages to topics).
package struct FCMCondition: ValidatedString {
    package static let rule =
        "a condition joins at most five FCM topics: 'a' in topics && ('b' in topics || !('c' in topics))"

    package let rawValue: String

    package init?(rawValue: String) {
        guard Self.isValid(rawValue) else { return nil }
        self.rawValue = rawValue
    }

    package static let maximumTopics = 5
    private static let maximumDepth = 32

    /// Whether `text` is a valid condition: topics in single quotes, `&&`, `||`, `!` and parentheses, at most five
    /// topics.
    private static func isValid(_ text: String) -> Bool {
        var reader = Reader(rest: Array(text.utf8)[...])
        return reader.expression(depth: 0) && reader.isAtEnd && reader.topics <= maximumTopics
    }

    private struct Reader {
        var rest: ArraySlice<UInt8>
        private(set) var topics = 0

        init(rest: ArraySlice<UInt8>) { self.rest = rest }

        var isAtEnd: Bool {
            mutating get {
                skipSpaces()
                return rest.isEmpty
            }
        }

        mutating func expression(depth: Int) -> Bool {
            guard term(depth: depth) else { return false }
            while take("&&") || take("||") {
                guard term(depth: depth) else { return false }
            }
            return true
        }

        private mutating func term(depth: Int) -> Bool {
            guard depth < maximumDepth else { return false }
            if take("!") { return term(depth: depth + 1) }
            if take("(") { return expression(depth: depth + 1) && take(")") }
            guard take("'"), let end = rest.firstIndex(of: UInt8(ascii: "'")) else { return false }
            let name = String(decoding: rest[..<end], as: UTF8.self)
            rest = rest[(end + 1)...]
            topics += 1
            return FCMTopic(rawValue: name) != nil && take("in ") && take("topics")
        }

        /// Skips spaces, then `word` if it is next.
        private mutating func take(_ word: String) -> Bool {
            skipSpaces()
            guard rest.starts(with: word.utf8) else { return false }
            rest = rest.dropFirst(word.utf8.count)
            return true
        }

        private mutating func skipSpaces() { rest = rest.drop { $0 == UInt8(ascii: " ") } }
    }
}
