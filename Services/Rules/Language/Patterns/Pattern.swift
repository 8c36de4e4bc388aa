import PushProtocol

/// A pattern over JSON with the semantics of Amazon EventBridge event patterns.
///
/// Every field of the pattern must match; other fields are ignored. An array matches if one of its elements matches.
package struct Pattern: Hashable, Sendable {
    /// All of these must match.
    var fields: [Field] = []
    /// `$or`: one of these must match on the same object, unless the list is empty.
    var alternatives: [Pattern] = []

    struct Field: Hashable, Sendable {
        var name: String
        var test: Test
    }

    enum Test: Hashable, Sendable {
        /// The field is an object that matches, or a list with one object that matches the whole pattern.
        case object(Pattern)
        /// The field, or one element of its list, matches one of these.
        case leaf([Matcher])
    }

    func matches(_ value: JSONValue) -> Bool {
        switch value {
        case .object: matchesObject(value)
        // An empty list counts as absent, so only `exists: false` can match inside it.
        case .array(let elements) where !elements.isEmpty: elements.contains { matches($0) }
        case .array, .null, .bool, .int, .double, .string: matchesObject(.object([:]))
        }
    }

    private func matchesObject(_ object: JSONValue) -> Bool {
        fields.allSatisfy { $0.test.matches(object[$0.name]) }
            && (alternatives.isEmpty || alternatives.contains { $0.matchesObject(object) })
    }

    /// The dotted paths of all fields in the pattern.
    var paths: [String] {
        fields.flatMap { field in
            switch field.test {
            case .leaf: [field.name]
            case .object(let pattern): pattern.paths.map { "\(field.name).\($0)" }
            }
        } + alternatives.flatMap(\.paths)
    }
}

extension Pattern.Test {
    func matches(_ value: JSONValue?) -> Bool {
        switch self {
        case .object(let pattern): pattern.matches(value ?? .object([:]))
        case .leaf(let matchers): matchers.contains { $0.matches(anyLeafOf: value) }
        }
    }
}
