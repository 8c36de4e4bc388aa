import PushProtocol

/// Finds the conditions that an event may meet. The cost depends on the event's size, not on the number of conditions.
///
/// The index files each condition under a path and a value that it requires, and looks up the values of an event. If a
/// condition requires several values, the index uses the value that the fewest other conditions require.
///
/// A condition with only `anything-but`, `numeric`, `cidr` or `exists` is filed under its path. A condition without any
/// path is tested for every event.
struct RuleIndex: Sendable {
    private var root = Node()
    /// The positions of conditions to test for every event.
    private var unfiled: [Int] = []

    init(_ conditions: [Rule.Condition]) {
        let choices = conditions.map { RuleIndex.choices($0) }
        var demand: [Handle: Int] = [:]
        for handle in choices.joined().joined() { demand[handle, default: 0] += 1 }
        for (position, choices) in choices.enumerated() {
            func maximumDemand(_ handles: [Handle]) -> Int { handles.map { demand[$0, default: 0] }.max() ?? 0 }
            guard let best = choices.min(by: { maximumDemand($0) < maximumDemand($1) }) else {
                unfiled.append(position)
                continue
            }
            for handle in Set(best) { root.file(position, under: handle.test, at: handle.path[...]) }
        }
    }

    /// Returns the positions of all conditions that the event may meet, ascending. The caller tests each of them.
    func candidates(for event: DomainEvent) -> [Int] {
        guard !root.isEmpty else { return unfiled }
        var found = Set(unfiled)
        root.collect(.object(event.indexed), into: &found)
        return found.sorted()
    }
}

extension DomainEvent {
    fileprivate var indexed: [String: JSONValue] {
        var members = ["data": data, "source": JSONValue.string(source)]
        members["subject"] = subject.map(JSONValue.string)
        return members
    }
}

// MARK: - Index handles

extension RuleIndex {
    struct Handle: Hashable, Sendable {
        var path: [String]
        var test: Test

        /// The test for a value at the path.
        enum Test: Hashable, Sendable {
            case value(JSONValue)
            case folded(String)
            case prefix([UInt8])
            case suffix([UInt8])
            case any
        }
    }

    /// Returns alternative sets of handles for a condition. Each set is enough to find every event that meets it.
    private static func choices(_ condition: Rule.Condition) -> [[Handle]] {
        (condition.data.map { choices($0, ["data"]) } ?? []) + (condition.attributes.map { choices($0, []) } ?? [])
    }

    private static func choices(_ pattern: Pattern, _ path: [String]) -> [[Handle]] {
        var choices = pattern.fields.flatMap { field -> [[Handle]] in
            let path = path + [field.name]
            switch field.test {
            case .object(let inner): return RuleIndex.choices(inner, path)
            case .leaf(let matchers):
                let tests = matchers.compactMap(\.handle)
                // If one matcher has no handle, the field cannot be used.
                return tests.count == matchers.count ? [tests.map { Handle(path: path, test: $0) }] : []
            }
        }
        // Any branch of `$or` can match, so the set needs handles for each of them.
        let alternatives = pattern.alternatives.map { RuleIndex.choices($0, path).first }
        if !alternatives.isEmpty, !alternatives.contains(where: { $0 == nil }) {
            choices.append(alternatives.compactMap(\.self).flatMap(\.self))
        }
        return choices
    }
}

extension Matcher {
    /// The index test of the matcher; `nil` if an absent value can match.
    fileprivate var handle: RuleIndex.Handle.Test? {
        switch self {
        case .exact(let value): .value(value.indexKey)
        case .equalsIgnoreCase(let text): .folded(text.lowercased())
        case .prefix(let prefix, ignoringCase: false): .prefix(Array(prefix.utf8))
        case .suffix(let suffix, ignoringCase: false): .suffix(Array(suffix.utf8))
        case .wildcard(let wildcard):
            if !wildcard.head.isEmpty {
                .prefix(wildcard.head)
            } else if !wildcard.tail.isEmpty {
                .suffix(wildcard.tail)
            } else {
                .any
            }
        case .prefix(_, ignoringCase: true), .suffix(_, ignoringCase: true), .anythingBut, .numeric, .cidr,
            .exists(true):
            .any
        case .exists(false): nil
        }
    }
}

extension JSONValue {
    /// Equal for all values that ``Matcher/exact(_:)`` treats as equal.
    fileprivate var indexKey: JSONValue { number.map(JSONValue.double) ?? self }
}

// MARK: - Lookup

extension RuleIndex {
    /// The conditions that are filed under one path, and the nodes of longer paths.
    private struct Node: Sendable {
        var children: [String: Node] = [:]
        var values: [JSONValue: [Int]] = [:]
        var folded: [String: [Int]] = [:]
        /// By length, so that a text needs one lookup for each length.
        var prefixes: [Int: [[UInt8]: [Int]]] = [:]
        var suffixes: [Int: [[UInt8]: [Int]]] = [:]
        var any: [Int] = []

        var isEmpty: Bool { children.isEmpty }

        mutating func file(_ position: Int, under test: Handle.Test, at path: ArraySlice<String>) {
            if let name = path.first {
                children[name, default: Node()].file(position, under: test, at: path.dropFirst())
                return
            }
            switch test {
            case .value(let value): values[value, default: []].append(position)
            case .folded(let text): folded[text, default: []].append(position)
            case .prefix(let bytes): prefixes[bytes.count, default: [:]][bytes, default: []].append(position)
            case .suffix(let bytes): suffixes[bytes.count, default: [:]][bytes, default: []].append(position)
            case .any: any.append(position)
            }
        }

        /// Collects the conditions under a value. List elements have the path of their list, as in a ``Pattern``.
        func collect(_ value: JSONValue, into found: inout Set<Int>) {
            switch value {
            case .object(let members):
                if members.count < children.count {
                    for (name, member) in members { children[name]?.collect(member, into: &found) }
                } else {
                    for (name, child) in children {
                        if let member = members[name] { child.collect(member, into: &found) }
                    }
                }
            case .array(let elements): for element in elements { collect(element, into: &found) }
            case .null, .bool, .int, .double: lookUp(value, into: &found)
            case .string(let text):
                lookUp(value, into: &found)
                if !folded.isEmpty, let hits = folded[text.lowercased()] { found.formUnion(hits) }
                for (length, filed) in prefixes {
                    if let hits = filed[Array(text.utf8.prefix(length))] { found.formUnion(hits) }
                }
                for (length, filed) in suffixes {
                    if let hits = filed[Array(text.utf8.suffix(length))] { found.formUnion(hits) }
                }
            }
        }

        private func lookUp(_ leaf: JSONValue, into found: inout Set<Int>) {
            if !any.isEmpty { found.formUnion(any) }
            if !values.isEmpty, let hits = values[leaf.indexKey] { found.formUnion(hits) }
        }
    }
}
