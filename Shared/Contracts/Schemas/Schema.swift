import PushProtocol

/// Builds JSON Schemas (2020-12) as JSON values.
enum Schema {
    struct Member {
        var name: String
        var schema: JSONValue
        var isRequired: Bool
    }

    static func required(_ name: String, _ schema: JSONValue) -> Member {
        Member(name: name, schema: schema, isRequired: true)
    }

    /// A member that may be absent.
    static func optional(_ name: String, _ schema: JSONValue) -> Member {
        Member(name: name, schema: schema, isRequired: false)
    }

    /// An object.
    ///
    /// - Parameter isStrict: whether readers refuse unknown members; they ignore them otherwise.
    static func object(_ about: String, isStrict: Bool = false, _ members: [Member]) -> JSONValue {
        object(isStrict: isStrict, members).merging(["description": .string(about)])
    }

    /// An object without a description.
    static func object(isStrict: Bool = false, _ members: [Member]) -> JSONValue {
        var schema: [String: JSONValue] = [
            "type": "object",
            "properties": .object(Dictionary(members.map { ($0.name, $0.schema) }) { first, _ in first }),
        ]
        let required = members.filter(\.isRequired).map { JSONValue.string($0.name) }
        if !required.isEmpty { schema["required"] = .array(required) }
        if isStrict { schema["additionalProperties"] = false }
        return .object(schema)
    }

    static func text(_ about: String, pattern: String? = nil, length: ClosedRange<Int>? = nil) -> JSONValue {
        var schema: [String: JSONValue] = ["type": "string", "description": .string(about)]
        schema["pattern"] = pattern.map(JSONValue.string)
        if let length {
            schema["minLength"] = .int(Int64(length.lowerBound))
            schema["maxLength"] = .int(Int64(length.upperBound))
        }
        return .object(schema)
    }

    static func constant(_ value: JSONValue, _ about: String) -> JSONValue {
        ["const": value, "description": .string(about)]
    }

    static func words(_ words: [String], _ about: String) -> JSONValue {
        ["type": "string", "enum": .array(words.map(JSONValue.string)), "description": .string(about)]
    }

    /// One of the raw values of an enumeration of the code.
    static func words<Word: RawRepresentable<String> & CaseIterable>(_ type: Word.Type, _ about: String) -> JSONValue {
        words(Word.allCases.map(\.rawValue), about)
    }

    static func integer(_ about: String, _ range: ClosedRange<Int64>? = nil) -> JSONValue {
        var schema: [String: JSONValue] = ["type": "integer", "description": .string(about)]
        schema["minimum"] = range.map { .int($0.lowerBound) }
        schema["maximum"] = range.map { .int($0.upperBound) }
        return .object(schema)
    }

    static func bool(_ about: String) -> JSONValue { ["type": "boolean", "description": .string(about)] }

    static func any(_ about: String) -> JSONValue { ["description": .string(about)] }

    static func list(_ about: String, of element: JSONValue, atMost limit: Int? = nil) -> JSONValue {
        var schema: [String: JSONValue] = ["type": "array", "items": element, "description": .string(about)]
        schema["maxItems"] = limit.map { .int(Int64($0)) }
        return .object(schema)
    }

    /// A value that may be `null`.
    static func nullable(_ schema: JSONValue) -> JSONValue { ["anyOf": [schema, ["type": "null"]]] }

    /// A shared definition; see ``definitions``.
    static func definition(_ name: String) -> JSONValue { ["$ref": .string("#/$defs/\(name)")] }

    /// Adds the shared definitions that a schema needs, as its member `$defs`.
    static func withDefinitions(_ schema: JSONValue) -> JSONValue {
        var found: [String: JSONValue] = [:]
        var rest = references(in: schema)
        while let name = rest.popFirst() {
            guard found[name] == nil, let definition = definitions[name] else { continue }
            found[name] = definition
            rest.formUnion(references(in: definition))
        }
        guard !found.isEmpty else { return schema }
        return schema.merging(["$defs": .object(found)])
    }

    private static func references(in schema: JSONValue) -> Set<String> {
        switch schema {
        case .object(let members):
            if let name = members["$ref"]?.string?.split(separator: "/").last { return [String(name)] }
            return members.values.reduce(into: []) { $0.formUnion(references(in: $1)) }
        case .array(let elements): return elements.reduce(into: []) { $0.formUnion(references(in: $1)) }
        case .null, .bool, .int, .double, .string: return []
        }
    }
}

// MARK: - Values of this project

extension Schema {
    static func uuid(_ about: String) -> JSONValue {
        [
            "type": "string", "format": "uuid", "description": .string(about),
            "pattern": "^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$",
        ]
    }

    static func timestamp(_ about: String) -> JSONValue {
        integer("\(about) In milliseconds since 1970-01-01T00:00:00Z.")
    }

    /// An RFC 3339 time.
    static func time(_ about: String) -> JSONValue {
        [
            "type": "string", "format": "date-time", "description": .string(about),
            "pattern": #"^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$"#,
        ]
    }

    static let app = text("The app: \(AppID.rule).", pattern: "^[a-z0-9][a-z0-9-]{0,62}$")

    static func user(_ about: String) -> JSONValue {
        text(
            "\(about) At most \(UserID.maximumLength) bytes without control characters.",
            pattern: #"^[^\u0000-\u001F\u007F]+$"#, length: 1...UserID.maximumLength)
    }

    static func group(_ about: String) -> JSONValue {
        text(about, pattern: "^[!-~]{1,\(GroupName.maximumLength)}$")
    }

    static let lane = words(Lane.self, "The priority: each lane has its own queues.")
    static let provider = words(Provider.self, "The push provider.")
    static func environment(_ about: String) -> JSONValue { words(ProviderEnvironment.self, about) }
    static let delivery = words(
        DeliveryPolicy.self, "Whether a push with an unknown result is sent again. Absent: at-least-once.")
    static let expiresAt = timestamp("Not sent after this time. Absent: the provider's limits apply.")
}
