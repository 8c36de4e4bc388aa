package import PushProtocol

/// Validates JSON by a JSON Schema (2020-12), as far as this project's schemas use it.
///
/// A keyword that it does not know is a problem, so that no schema is accepted unread. `format` is ignored.
package struct SchemaValidator {
    private let root: JSONValue
    /// Whether members that an object's schema does not describe are problems.
    private let isClosed: Bool

    /// - Parameters:
    ///   - root: the document to which `$ref` refers.
    ///   - isClosed: whether members that an object's schema does not describe are problems.
    package init(_ root: JSONValue, isClosed: Bool = false) {
        self.root = root
        self.isClosed = isClosed
    }

    /// The problems of a value, each with its place; empty for a valid one.
    ///
    /// - Parameter schema: `nil`: the root.
    package func problems(of value: JSONValue, by schema: JSONValue? = nil) -> [String] {
        problems(value, schema ?? root, "$")
    }

    package func accepts(_ value: JSONValue, by schema: JSONValue? = nil) -> Bool {
        problems(of: value, by: schema).isEmpty
    }

    private static let annotations: Set<String> = [
        "$schema", "$id", "$defs", "$comment", "title", "description", "examples", "example", "default", "format",
        "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType", "discriminator",
    ]

    private func problems(_ value: JSONValue, _ schema: JSONValue, _ place: String) -> [String] {
        switch schema {
        case .bool(let accepts): return accepts ? [] : ["\(place): not allowed"]
        case .object(let keywords):
            return keywords.sorted { $0.key < $1.key }.flatMap { keyword, operand in
                problem(value, keyword, operand, keywords, place)
            }
        default: return ["\(place): the schema is not an object"]
        }
    }

    private func problem(
        _ value: JSONValue, _ keyword: String, _ operand: JSONValue, _ keywords: [String: JSONValue], _ place: String
    ) -> [String] {
        func require(_ holds: Bool, _ problem: String) -> [String] { holds ? [] : ["\(place): \(problem)"] }
        func count(_ schemas: [JSONValue]) -> Int { schemas.count { problems(value, $0, place).isEmpty } }
        let schemas = operand.array ?? []
        switch keyword {
        case _ where Self.annotations.contains(keyword) || keyword.hasPrefix("x-"): return []
        case "$ref":
            guard let target = resolve(operand.string ?? "") else { return ["\(place): no \(operand)"] }
            return problems(value, target, place)
        case "type":
            let types = operand.array?.compactMap(\.string) ?? [operand.string ?? ""]
            return require(types.contains { Self.isOf($0, value) }, "expected \(types.joined(separator: " or "))")
        case "const": return require(Self.areEqual(value, operand), "expected \(operand)")
        case "enum": return require(schemas.contains { Self.areEqual(value, $0) }, "not one of \(schemas)")
        case "allOf": return schemas.flatMap { problems(value, $0, place) }
        case "anyOf":
            if count(schemas) > 0 { return [] }
            return ["\(place): no alternative: \(schemas.map { problems(value, $0, place) })"]
        case "oneOf":
            let matching = count(schemas)
            guard matching != 1 else { return [] }
            let problems = schemas.map { self.problems(value, $0, place) }
            return ["\(place): \(matching) alternatives match: \(problems)"]
        case "not": return require(!problems(value, operand, place).isEmpty, "matches \(operand)")
        case "if":
            let branch = problems(value, operand, place).isEmpty ? "then" : "else"
            return keywords[branch].map { problems(value, $0, place) } ?? []
        case "then", "else": return []
        default:
            return problemOfKind(value, keyword, operand, keywords, place)
                ?? ["\(place): the validator does not know \(keyword)"]
        }
    }

    /// Keywords for one type of value; `nil` for an unknown keyword.
    private func problemOfKind(
        _ value: JSONValue, _ keyword: String, _ operand: JSONValue, _ keywords: [String: JSONValue], _ place: String
    ) -> [String]? {
        func require(_ holds: Bool?, _ problem: String) -> [String] { holds == false ? ["\(place): \(problem)"] : [] }
        let limit = operand.number ?? 0
        switch keyword {
        case "minimum": return require(value.number.map { $0 >= limit }, "less than \(limit)")
        case "maximum": return require(value.number.map { $0 <= limit }, "greater than \(limit)")
        case "exclusiveMinimum": return require(value.number.map { $0 > limit }, "not greater than \(limit)")
        case "exclusiveMaximum": return require(value.number.map { $0 < limit }, "not less than \(limit)")
        case "minLength": return require(value.string.map { Double($0.unicodeScalars.count) >= limit }, "too short")
        case "maxLength": return require(value.string.map { Double($0.unicodeScalars.count) <= limit }, "too long")
        case "pattern":
            guard let regex = try? Regex(operand.string ?? "").matchingSemantics(.unicodeScalar) else {
                return ["\(place): not a pattern: \(operand)"]
            }
            return require(value.string.map { $0.firstMatch(of: regex) != nil }, "does not match \(operand)")
        case "minItems": return require(value.array.map { Double($0.count) >= limit }, "too few elements")
        case "maxItems": return require(value.array.map { Double($0.count) <= limit }, "too many elements")
        case "uniqueItems": return require(value.array.map { Set($0).count == $0.count }, "an element repeats")
        case "minProperties": return require(value.object.map { Double($0.count) >= limit }, "too few members")
        case "maxProperties": return require(value.object.map { Double($0.count) <= limit }, "too many members")
        case "items":
            return (value.array ?? []).enumerated().flatMap { problems($1, operand, "\(place)[\($0)]") }
        case "contains":
            return require(
                value.array.map { $0.contains { problems($0, operand, place).isEmpty } }, "no element matches")
        case "required":
            return (operand.array ?? []).compactMap(\.string).filter { value.object?[$0] == nil && value.object != nil }
                .map { "\(place): lacks \($0)" }
        case "properties":
            return (value.object ?? [:]).sorted { $0.key < $1.key }.flatMap { name, member in
                if let schema = operand[name] { return problems(member, schema, "\(place).\(name)") }
                let isOpen = !isClosed || keywords["type"] != "object" || keywords["additionalProperties"] != nil
                return isOpen ? [] : ["\(place): \(name) is not described"]
            }
        case "additionalProperties":
            return (value.object ?? [:]).filter { keywords["properties"]?[$0.key] == nil }
                .sorted { $0.key < $1.key }.flatMap { problems($0.value, operand, "\(place).\($0.key)") }
        case "propertyNames":
            return (value.object ?? [:]).keys.flatMap { problems(.string($0), operand, "\(place).\($0)") }
        default: return nil
        }
    }

    /// The part of the root that a reference such as `#/$defs/trace` names.
    private func resolve(_ reference: String) -> JSONValue? {
        guard reference.hasPrefix("#") else { return nil }
        return reference.dropFirst().split(separator: "/").reduce(Optional(root)) { value, name in
            value?[String(name).replacing("~1", with: "/").replacing("~0", with: "~")]
        }
    }

    private static func isOf(_ type: String, _ value: JSONValue) -> Bool {
        switch (type, value) {
        case ("null", .null), ("boolean", .bool), ("string", .string), ("array", .array), ("object", .object),
            ("number", .int), ("number", .double), ("integer", .int):
            true
        case ("integer", .double(let number)): number.rounded() == number
        default: false
        }
    }

    private static func areEqual(_ a: JSONValue, _ b: JSONValue) -> Bool {
        if case .int = a, case .int = b { return a == b }
        if let a = a.number, let b = b.number { return a == b }
        return a == b
    }
}

extension JSONValue {
    /// Converts the result of a YAML or JSON parser; `nil` for a value without a JSON form.
    package init?(parsed value: Any) {
        switch value {
        case let value as Bool: self = .bool(value)
        case let value as Int: self = .int(Int64(value))
        case let value as Double: self = .double(value)
        case let value as String: self = .string(value)
        case let value as [Any]: self = .array(value.compactMap(JSONValue.init(parsed:)))
        case let value as [AnyHashable: Any]:
            self = .object(
                Dictionary(value.compactMap { key, value in JSONValue(parsed: value).map { ("\(key)", $0) } }) {
                    first, _ in first
                })
        default: self = .null
        }
    }

    /// Every value that differs from this one in one member: each member removed, or replaced by each of `others`.
    package func mutations(with others: [JSONValue]) -> [(path: String, change: String, value: JSONValue)] {
        guard case .object(let members) = self else {
            guard case .array(let elements) = self else { return [] }
            return elements.enumerated().flatMap { index, element in
                element.mutations(with: others).map { one in
                    var copy = elements
                    copy[index] = one.value
                    return ("\(index).\(one.path)", one.change, .array(copy))
                }
            }
        }
        return members.sorted { $0.key < $1.key }.flatMap { name, member in
            func replaced(by other: JSONValue?) -> JSONValue {
                var copy = members
                copy[name] = other
                return .object(copy)
            }
            return [(name, "removed", replaced(by: nil))]
                + others.map { (name, "replaced by \($0)", replaced(by: $0)) }
                + member.mutations(with: others).map { ("\(name).\($0.path)", $0.change, replaced(by: $0.value)) }
        }
    }
}
