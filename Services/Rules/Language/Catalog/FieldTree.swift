package import PushProtocol

/// The fields of an object, as a tree that becomes a JSON Schema.
package struct FieldTree: Hashable, Sendable {
    private var isRequired = false
    private var schemas: [JSONValue] = []
    private var description: String?
    private var examples: [JSONValue] = []
    private var members: [String: FieldTree] = [:]

    package init() {}

    /// Adds a field.
    ///
    /// - Parameter isRequired: whether the field, and all objects around it, must be present.
    mutating func add(_ path: ArraySlice<String>, isRequired: Bool, _ schema: JSONValue?) {
        guard let name = path.first else {
            if let schema, !schemas.contains(schema) { schemas.append(schema) }
            return
        }
        members[name, default: FieldTree()].isRequired = members[name]?.isRequired ?? false || isRequired
        members[name, default: FieldTree()].add(path.dropFirst(), isRequired: isRequired, schema)
    }

    /// Describes the field at `path`, which was added.
    mutating func describe(_ path: ArraySlice<String>, as text: String, examples: [JSONValue]) {
        guard let name = path.first else {
            description = text
            self.examples = examples
            return
        }
        members[name]?.describe(path.dropFirst(), as: text, examples: examples)
    }

    /// The schema. An object with a required member must be an object.
    package var schema: JSONValue {
        var schema: [String: JSONValue] = [:]
        schema["description"] = description.map(JSONValue.string)
        if !examples.isEmpty { schema["examples"] = .array(examples) }
        if !members.isEmpty { schema["properties"] = .object(members.mapValues(\.schema)) }
        let required = members.filter(\.value.isRequired).keys.sorted()
        if !required.isEmpty {
            schema["type"] = "object"
            schema["required"] = .array(required.map(JSONValue.string))
        }
        if schemas.count == 1, schema.keys.allSatisfy({ ["description", "examples"].contains($0) }),
            case .object(let only) = schemas[0]
        {
            schema.merge(only) { own, _ in own }
        } else if !schemas.isEmpty {
            schema["allOf"] = .array(schemas)
        }
        return .object(schema)
    }
}
