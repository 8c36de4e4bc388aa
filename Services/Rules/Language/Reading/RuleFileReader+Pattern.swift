import Primitives
import PushProtocol
import Yams

extension RuleFileReader {
    /// An operator that compares texts. `anything-but` negates it.
    enum TextOperator: String, CaseIterable {
        case prefix, suffix
        case equalsIgnoreCase = "equals-ignore-case"
        case wildcard
    }

    /// An operator with an operand of its own form.
    enum ValueOperator: String, CaseIterable {
        case anythingBut = "anything-but"
        case numeric, exists, cidr
    }

    static let operators = TextOperator.allCases.map(\.rawValue) + ValueOperator.allCases.map(\.rawValue)

    /// Reads a pattern in the syntax of Amazon EventBridge: nested keys that end in lists of accepted values.
    func pattern(_ field: Field) -> Pattern? {
        guard let members = members(field) else { return nil }
        guard !members.isEmpty else {
            report(field, "a pattern needs at least one field")
            return nil
        }
        var pattern = Pattern()
        for (name, value) in members {
            if name == "$or" {
                pattern.alternatives = alternatives(value)
            } else if case .mapping = value.node {
                if let inner = self.pattern(value) { pattern.fields.append(.init(name: name, test: .object(inner))) }
            } else if let matchers = matchers(value) {
                pattern.fields.append(.init(name: name, test: .leaf(matchers)))
            }
        }
        return pattern
    }

    private func alternatives(_ field: Field) -> [Pattern] {
        guard let list = list(field) else { return [] }
        if list.count < 2 { report(field, "$or needs at least two patterns") }
        return list.compactMap { pattern($0) }
    }

    /// Reads the accepted values of a field: a list of values and operators.
    func matchers(_ field: Field) -> [Matcher]? {
        guard case .sequence = field.node else {
            report(field, "expected a list of accepted values, such as [value]")
            return nil
        }
        return oneOrMore(field)?.compactMap { matcher($0) }
    }

    private func matcher(_ field: Field) -> Matcher? {
        guard case .mapping = field.node else { return scalar(field).map(Matcher.exact) }
        guard let members = members(field) else { return nil }
        guard members.count == 1, let (name, value) = members.first else {
            report(field, "expected one operator, such as {prefix: …}")
            return nil
        }
        if let comparison = TextOperator(rawValue: name) { return matcher(comparison, value) }
        switch ValueOperator(rawValue: name) {
        case .anythingBut: return anythingBut(value)
        case .numeric: return numeric(value)
        case .cidr: return cidr(value)
        case .exists: return exists(value)
        case nil:
            let hint =
                NearestMatch.of(name, among: RuleFileReader.operators).map { "did you mean “\($0)”?" }
                ?? "the operators are \(RuleFileReader.operators.joined(separator: ", "))"
            report(value, "unknown operator; \(hint)")
            return nil
        }
    }

    private func matcher(_ comparison: TextOperator, _ operand: Field) -> Matcher? {
        switch comparison {
        case .prefix: affix(operand) { .prefix($0, ignoringCase: $1) }
        case .suffix: affix(operand) { .suffix($0, ignoringCase: $1) }
        case .equalsIgnoreCase: text(operand).map(Matcher.equalsIgnoreCase)
        case .wildcard: wildcard(operand)
        }
    }
}

// MARK: - Operators

extension RuleFileReader {
    private func exists(_ field: Field) -> Matcher? {
        guard let value = scalar(field) else { return nil }
        guard case .bool(let wanted) = value else {
            report(field, "exists is true or false, not \(value.kind)")
            return nil
        }
        return .exists(wanted)
    }

    /// Reads a text, or `{equals-ignore-case: text}`.
    private func affix(_ field: Field, _ make: (String, Bool) -> Matcher) -> Matcher? {
        guard case .mapping = field.node else { return text(field).map { make($0, false) } }
        let key = "equals-ignore-case"
        return table(field, keys: [key], required: [key])?[key].flatMap { text($0) }.map { make($0, true) }
    }

    private func wildcard(_ field: Field) -> Matcher? {
        guard let text = text(field) else { return nil }
        guard let wildcard = Wildcard(text) else {
            report(field, "“\(text)” is not a wildcard: no two * in a row, and \\ only before * or \\")
            return nil
        }
        return .wildcard(wildcard)
    }

    private func cidr(_ field: Field) -> Matcher? {
        guard let text = text(field) else { return nil }
        guard let block = CIDR(text) else {
            report(field, "“\(text)” is not a block of addresses such as 10.0.0.0/24 or 2001:db8::/32")
            return nil
        }
        return .cidr(block)
    }

    /// Reads a value or a list of values, or one operator with a text or a list of texts.
    private func anythingBut(_ field: Field) -> Matcher? {
        guard case .mapping = field.node else {
            guard let values = oneOrMore(field) else { return nil }
            return .anythingBut(values.compactMap { scalar($0).map(Matcher.exact) })
        }
        let keys = TextOperator.allCases.map(\.rawValue)
        guard let members = members(field) else { return nil }
        guard members.count == 1, let (name, value) = members.first, let comparison = TextOperator(rawValue: name)
        else {
            report(field, "anything-but takes values, or one of \(keys.joined(separator: ", "))")
            return nil
        }
        let refused = (oneOrMore(value) ?? []).compactMap { matcher(comparison, $0) }
        return refused.isEmpty ? nil : .anythingBut(refused)
    }

    /// Reads pairs of comparison and number: `[">", 0, "<=", 5]`.
    private func numeric(_ field: Field) -> Matcher? {
        guard let list = list(field) else { return nil }
        guard !list.isEmpty, list.count.isMultiple(of: 2) else {
            report(field, "numeric takes pairs of a comparison and a number: [\">\", 0, \"<=\", 5]")
            return nil
        }
        var comparisons: [Matcher.Comparison] = []
        for index in stride(from: 0, to: list.count, by: 2) {
            guard let relation: Matcher.Comparison.Relation = choice(list[index]) else { return nil }
            guard let bound = scalar(list[index + 1])?.number else {
                report(list[index + 1], "expected a number")
                return nil
            }
            comparisons.append(.init(relation: relation, bound: bound))
        }
        return .numeric(comparisons)
    }
}
