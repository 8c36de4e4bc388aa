package import PushProtocol

extension Pattern {
    /// A JSON Schema that accepts exactly the objects that match; `nil` where no schema can say it, such as for
    /// `cidr`.
    package var schema: JSONValue? {
        var required: [JSONValue] = []
        var properties: [String: JSONValue] = [:]
        for field in fields {
            guard let schema = field.test.schema else { return nil }
            if !field.test.matches(nil) { required.append(.string(field.name)) }
            properties[field.name] = properties[field.name].map { ["allOf": [$0, schema]] } ?? schema
        }
        var whole: [String: JSONValue] = ["type": "object"]
        if !properties.isEmpty { whole["properties"] = .object(properties) }
        if !required.isEmpty { whole["required"] = .array(required) }
        if !alternatives.isEmpty {
            let schemas = alternatives.compactMap(\.schema)
            guard schemas.count == alternatives.count else { return nil }
            whole["anyOf"] = .array(schemas)
        }
        return .object(whole)
    }
}

extension Pattern.Test {
    /// The nesting of lists that schemas look into.
    static let depth = 2
    private static let scalar: JSONValue = ["type": ["null", "boolean", "number", "string"]]

    fileprivate var schema: JSONValue? {
        switch self {
        case .object(let pattern):
            guard let inner = pattern.schema else { return nil }
            // Anything but an object counts as an empty one.
            let isMatchedByNothing = pattern.matches(.object([:]))
            let empty: JSONValue = ["type": "array", "maxItems": 0]
            let element: JSONValue = isMatchedByNothing ? ["anyOf": [inner, Self.scalar, empty]] : inner
            return ["anyOf": [element, Self.list(of: element)]]
        case .leaf(let matchers):
            let schemas = matchers.compactMap { matcher -> JSONValue? in
                switch matcher {
                case .exists(true): Self.leaf(Self.scalar)
                case .exists(false): ["not": Self.leaf(Self.scalar)]
                default: matcher.schema.map(Self.leaf)
                }
            }
            guard schemas.count == matchers.count else { return nil }
            return schemas.count == 1 ? schemas[0] : ["anyOf": .array(schemas)]
        }
    }

    /// The value itself, or an element of a list.
    private static func leaf(_ schema: JSONValue) -> JSONValue { ["anyOf": [schema, list(of: schema)]] }

    private static func list(of element: JSONValue) -> JSONValue {
        (1..<depth).reduce(["type": "array", "contains": element]) { inner, _ in
            ["type": "array", "contains": ["anyOf": [element, inner]]]
        }
    }
}

extension Matcher {
    /// The schema of the matching scalars; `nil` where no schema can say it.
    fileprivate var schema: JSONValue? {
        switch self {
        case .exact(let value): return ["const": value]
        case .equalsIgnoreCase(let text): return Self.text(text, ignoringCase: true) { "^\($0)$" }
        case .prefix(let text, let ignoringCase): return Self.text(text, ignoringCase: ignoringCase) { "^\($0)" }
        case .suffix(let text, let ignoringCase): return Self.text(text, ignoringCase: ignoringCase) { "\($0)$" }
        case .wildcard(let wildcard):
            let pieces = wildcard.pieces.map { Self.escaped(String(decoding: $0, as: UTF8.self)) }
            return ["type": "string", "pattern": .string("^\(pieces.joined(separator: #"[\s\S]*"#))$")]
        case .anythingBut(let refused):
            let schemas = refused.compactMap(\.schema)
            guard schemas.count == refused.count else { return nil }
            return ["type": ["null", "boolean", "number", "string"], "not": ["anyOf": .array(schemas)]]
        case .numeric(let comparisons):
            let keywords = comparisons.map { ($0.relation.keyword, $0.bound) }
            return [
                "type": "number",
                "allOf": .array(
                    keywords.map { keyword, bound in
                        .object([keyword: Int64(exactly: bound).map(JSONValue.int) ?? .double(bound)])
                    }),
            ]
        case .cidr, .exists: return nil
        }
    }

    private static func text(
        _ text: String, ignoringCase: Bool, _ pattern: (String) -> String
    ) -> JSONValue? {
        guard ignoringCase else { return ["type": "string", "pattern": .string(pattern(escaped(text)))] }
        guard text.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
        // “k” and “s” have relatives outside of ASCII, which lowercase to them.
        let letters = text.map { letter -> String in
            guard letter.isLetter else { return escaped(String(letter)) }
            let relative = ["k": "\u{212A}"][letter.lowercased()] ?? ""
            return "[\(letter.lowercased())\(letter.uppercased())\(relative)]"
        }
        return ["type": "string", "pattern": .string(pattern(letters.joined()))]
    }

    /// A text as a regular expression (ECMA-262).
    private static func escaped(_ text: String) -> String {
        text.map { #"\^$.*+?()[]{}|/"#.contains($0) ? "\\\($0)" : String($0) }.joined()
    }
}

extension Matcher.Comparison.Relation {
    fileprivate var keyword: String {
        switch self {
        case .equal: "const"
        case .less: "exclusiveMaximum"
        case .lessOrEqual: "maximum"
        case .greater: "exclusiveMinimum"
        case .greaterOrEqual: "minimum"
        }
    }
}
