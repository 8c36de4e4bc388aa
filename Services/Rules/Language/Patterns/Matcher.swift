import PushProtocol

/// One test of one value in a ``Pattern``.
enum Matcher: Hashable, Sendable {
    /// An equal JSON value; numbers are compared as numbers.
    case exact(JSONValue)
    case equalsIgnoreCase(String)
    case prefix(String, ignoringCase: Bool)
    case suffix(String, ignoringCase: Bool)
    case wildcard(Wildcard)
    /// Any value that matches none of these. An absent value does not match.
    case anythingBut([Matcher])
    /// All comparisons hold.
    case numeric([Comparison])
    case cidr(CIDR)
    /// Whether the field has a value. `null` is a value; an object and an empty list are not.
    case exists(Bool)

    struct Comparison: Hashable, Sendable {
        enum Relation: String, Hashable, Sendable, CaseIterable {
            case equal = "="
            case less = "<"
            case lessOrEqual = "<="
            case greater = ">"
            case greaterOrEqual = ">="
        }
        var relation: Relation
        var bound: Double
    }

    /// Whether a value, or one element of a list, matches.
    func matches(anyLeafOf value: JSONValue?) -> Bool {
        if case .exists(let wanted) = self {
            return Matcher.anyLeaf(of: value, where: { _ in true }) == wanted
        }
        return Matcher.anyLeaf(of: value, where: matches)
    }

    private static func anyLeaf(of value: JSONValue?, where test: (JSONValue) -> Bool) -> Bool {
        switch value {
        case nil, .object: false
        case .array(let elements): elements.contains { anyLeaf(of: $0, where: test) }
        case .some(let leaf): test(leaf)
        }
    }

    private func matches(_ leaf: JSONValue) -> Bool {
        switch self {
        case .exact(let wanted): Matcher.areEqual(wanted, leaf)
        case .equalsIgnoreCase(let wanted): leaf.string?.lowercased() == wanted.lowercased()
        case .prefix(let prefix, let ignoringCase):
            Matcher.fold(leaf.string, ignoringCase)?.utf8.starts(with: Matcher.fold(prefix, ignoringCase).utf8) == true
        case .suffix(let suffix, let ignoringCase):
            Matcher.fold(leaf.string, ignoringCase)?.utf8.reversed()
                .starts(with: Matcher.fold(suffix, ignoringCase).utf8.reversed()) == true
        case .wildcard(let wildcard): leaf.string.map(wildcard.matches) == true
        case .anythingBut(let refused): !refused.contains { $0.matches(leaf) }
        case .numeric(let comparisons):
            leaf.number.map { number in comparisons.allSatisfy { $0.holds(number) } } == true
        case .cidr(let block): leaf.string.map(block.contains) == true
        case .exists(let wanted): wanted
        }
    }

    private static func areEqual(_ a: JSONValue, _ b: JSONValue) -> Bool {
        // Two integers are compared exactly, all other numbers as `Double`.
        if case .int = a, case .int = b { return a == b }
        if let a = a.number, let b = b.number { return a == b }
        return a == b
    }

    private static func fold(_ text: String?, _ ignoringCase: Bool) -> String? {
        text.map { fold($0, ignoringCase) }
    }

    private static func fold(_ text: String, _ ignoringCase: Bool) -> String {
        ignoringCase ? text.lowercased() : text
    }
}

extension Matcher.Comparison {
    fileprivate func holds(_ number: Double) -> Bool {
        switch relation {
        case .equal: number == bound
        case .less: number < bound
        case .lessOrEqual: number <= bound
        case .greater: number > bound
        case .greaterOrEqual: number >= bound
        }
    }
}
