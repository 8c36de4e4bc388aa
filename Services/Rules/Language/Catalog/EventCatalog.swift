package import PushProtocol

/// The event types of an app, as its rule file uses them: for producers, who publish the events.
package struct EventCatalog: Sendable {
    package let app: AppID
    /// In alphabetical order of the types.
    package let events: [EventDescription]

    /// Reads a rule file, or throws all errors in it.
    ///
    /// - Parameter file: the file's name without its folder.
    package init(_ text: String, file: String) throws(RuleFileError) {
        let ruleSet = try RuleFile.parse(text, file: file)
        let (_, reader) = RuleFile.read(text, file: file)
        app = ruleSet.app
        events = reader.catalog.sorted { $0.key < $1.key }.map { type, shape in
            EventDescription(type, shape, ruleSet, place: reader.place)
        }
    }
}

package struct EventDescription: Sendable {
    package let type: String
    package let about: String?
    /// The rules and signals that use the event, in the order of the file.
    package let users: [EventUser]
    /// The fields of the data that the rules use or the examples have, by path.
    package let fields: [EventField]
    package let dataSchema: JSONValue
    /// The data of the file's examples.
    package let examples: [JSONValue]

    /// - Parameter place: the place in the file of a key of a rule.
    fileprivate init(_ type: String, _ shape: EventShape, _ ruleSet: RuleSet, place: (String) -> String) {
        self.type = type
        about = shape.about
        examples = shape.examples
        users = EventUser.all(of: type, shape, ruleSet).map { user in
            var user = user
            user.place = place(user.place)
            for index in user.uses.indices { user.uses[index].place = place(user.uses[index].place) }
            return user
        }
        fields = EventField.all(shape, users)
        dataSchema = Self.dataSchema(type, about: about, users, fields, examples)
    }

    private static func dataSchema(
        _ type: String, about: String?, _ users: [EventUser], _ fields: [EventField], _ examples: [JSONValue]
    ) -> JSONValue {
        var tree = FieldTree()
        for field in fields {
            let path = field.path.split(separator: ".").map(String.init)[...]
            tree.add(path, isRequired: false, nil)
            tree.describe(path, as: field.about, examples: field.examples)
        }
        var schema = tree.schema.object ?? [:]
        schema["title"] = .string(type)
        schema["description"] = about.map(JSONValue.string)
        schema["examples"] = .array(examples)
        // A rule with a condition on an attribute is in the schema of the whole event.
        let needs = users.filter { $0.attributeCondition == nil }.compactMap(\.needs)
        if !needs.isEmpty { schema["allOf"] = .array(needs) }
        return .object(schema)
    }

    /// The parts of the schema of a whole event that concern its attributes, for events of this type.
    package var attributeSchemas: [JSONValue] {
        users.compactMap { user in
            let attributes = Set(user.uses.filter(\.isRequired).compactMap(\.attribute)).intersection([
                "subject", "time",
            ])
            var then: [String: JSONValue] = [:]
            if !attributes.isEmpty { then["required"] = .array(attributes.sorted().map(JSONValue.string)) }
            if user.attributeCondition != nil, let needs = user.needs { then["properties"] = ["data": needs] }
            guard !then.isEmpty else { return nil }
            var properties: [String: JSONValue] = [:]
            if user.hasDataCondition {
                guard let condition = user.dataCondition else { return nil }
                properties["data"] = condition
            }
            var schema: JSONValue = ["title": .string(user.place), "then": .object(then)]
            var condition: JSONValue = ["required": ["type"], "properties": .object(properties)]
            if let attributes = user.attributeCondition { condition = ["allOf": [condition, attributes]] }
            schema = schema.merging(["if": condition])
            return schema
        }
    }
}

/// A rule or a signal that uses an event type.
package struct EventUser: Sendable {
    /// The place in the rule file: `rules.chat-message`, `presence.0`.
    package fileprivate(set) var place: String
    package fileprivate(set) var uses: [FieldUse]
    fileprivate let hasDataCondition: Bool
    /// The schema of the data that it matches; `nil` if it has no condition, or none that a schema can say.
    fileprivate let dataCondition: JSONValue?
    /// The schema of the attributes that it matches; `nil` without such a condition.
    fileprivate let attributeCondition: JSONValue?
    /// The condition on attributes, to find values for an example.
    fileprivate let attributes: Pattern?

    /// Whether it uses only events with certain data or attributes.
    package var isConditional: Bool { hasDataCondition || attributeCondition != nil }

    fileprivate init(_ place: String, _ when: Rule.Condition, _ uses: [FieldUse]) {
        self.place = place
        self.uses = uses
        hasDataCondition = when.data != nil
        dataCondition = when.data?.schema
        attributes = when.attributes
        // A schema that accepts nothing keeps a condition that no schema can say from refusing an event.
        attributeCondition = when.attributes.map { $0.schema ?? false }
    }

    fileprivate static func all(of type: String, _ shape: EventShape, _ ruleSet: RuleSet) -> [EventUser] {
        func collect(_ place: String, _ when: Rule.Condition, _ add: (inout FieldUseCollector) -> Void) -> EventUser? {
            guard when.events.contains(type) else { return nil }
            var collector = FieldUseCollector(root: place, known: shape.paths)
            add(&collector)
            return EventUser(place, when, collector.uses)
        }
        return ruleSet.rules.compactMap { rule in collect("rules.\(rule.name)", rule.when) { $0.add(rule) } }
            + ruleSet.signals.compactMap { source in collect(source.place, source.when) { $0.add(source) } }
            + ruleSet.memberships.compactMap { source in collect(source.place, source.when) { $0.add(source) } }
            + ruleSet.replacements.compactMap { source in
                collect(source.place, source.when) { $0.add(source, ruleSet.rule(named: source.rule)) }
            }
    }

    /// The schema of the data that it needs, for the events that it matches; `nil` if it needs nothing.
    fileprivate var needs: JSONValue? {
        var tree = FieldTree()
        for use in uses where use.attribute == nil {
            tree.add(use.path.split(separator: ".").map(String.init)[...], isRequired: use.isRequired, use.schema)
        }
        let schema = tree.schema
        guard schema != [:] else { return nil }
        guard hasDataCondition else { return schema.merging(["title": .string(place)]) }
        guard let dataCondition else { return nil }
        return ["title": .string(place), "if": dataCondition, "then": schema]
    }
}

/// A field of an event's data.
package struct EventField: Hashable, Sendable {
    package let path: String
    /// The types of its values in the examples, such as `integer or null`; without examples, those that the rules accept.
    package let types: String
    /// The rules and signals that refuse an event without the field.
    package let requiredBy: [String]
    /// Whether one of them does so for every event.
    package let isAlwaysRequired: Bool
    /// The places in the rule file that use it.
    package let places: [String]
    /// Values in the examples, at most three.
    package let examples: [JSONValue]

    /// The description in the schema.
    var about: String {
        guard !places.isEmpty else { return "No rule uses it." }
        let required = isAlwaysRequired ? "Required." : requiredBy.isEmpty ? "Optional." : "Required by some rules."
        return "\(required) Used by \(places.joined(separator: ", "))."
    }

    fileprivate static func all(_ shape: EventShape, _ users: [EventUser]) -> [EventField] {
        let used = users.flatMap(\.uses).filter { $0.attribute == nil }.map(\.path)
        let inExamples = shape.paths.filter { $0 != Scope.attributes && !$0.hasPrefix("\(Scope.attributes).") }
        let all = Set(used).union(inExamples)
        // The fields of an object stand for it.
        let shown = all.filter { path in used.contains(path) || !all.contains { $0.hasPrefix("\(path).") } }
        return shown.sorted().map { path in
            let own = users.flatMap { user in user.uses.filter { $0.path == path }.map { (user, $0) } }
            let required = own.filter { $0.1.isRequired }
            let values = shape.examples.flatMap { $0.values(at: path.split(separator: ".")[...]) }
            var scalars: [JSONValue] = []
            for value in values where value.isScalar && !scalars.contains(value) { scalars.append(value) }
            return EventField(
                path: path, types: types(own.compactMap(\.1.schema), values),
                requiredBy: unique(required.map(\.0.place)),
                isAlwaysRequired: required.contains { !$0.0.isConditional },
                places: unique(own.map(\.1.place)), examples: Array(scalars.prefix(3)))
        }
    }

    /// The types of the examples' values, which the rules accept; without examples those that the rules accept.
    private static func types(_ schemas: [JSONValue], _ values: [JSONValue]) -> String {
        let byExamples = unique(values.map(\.typeName))
        return (byExamples.isEmpty ? unique(schemas.flatMap(\.typeNames)) : byExamples).joined(separator: " or ")
    }

    private static func unique(_ names: [String]) -> [String] {
        var seen: Set<String> = []
        return names.filter { seen.insert($0).inserted }
    }
}

extension JSONValue {
    /// The values at a path. Lists stand for their elements.
    fileprivate func values(at path: ArraySlice<Substring>) -> [JSONValue] {
        if case .array(let elements) = self, !path.isEmpty { return elements.flatMap { $0.values(at: path) } }
        guard let name = path.first else { return [self] }
        return self[String(name)]?.values(at: path.dropFirst()) ?? []
    }

    fileprivate var isScalar: Bool {
        switch self {
        case .array, .object: false
        case .null, .bool, .int, .double, .string: true
        }
    }

    fileprivate var typeName: String {
        switch self {
        case .null: "null"
        case .bool: "boolean"
        case .int: "integer"
        case .double: "number"
        case .string: "string"
        case .array: "array"
        case .object: "object"
        }
    }

    fileprivate var typeNames: [String] {
        if let alternatives = self["anyOf"]?.array { return alternatives.flatMap(\.typeNames) }
        return self["type"]?.array?.compactMap(\.string) ?? [self["type"]?.string].compactMap(\.self)
    }
}

// MARK: - Examples

extension EventCatalog {
    /// Complete events: the file's examples, with attributes that the rules accept.
    ///
    /// The ids are `example-1` and so on. An event without an example of its own does not exist: rule files need one.
    package var exampleEvents: [DomainEvent] {
        var events: [DomainEvent] = []
        for event in self.events {
            for data in event.examples {
                events.append(
                    DomainEvent(
                        app: app, id: "example-\(events.count + 1)", source: event.value(of: "source") ?? "/example",
                        type: event.type, subject: event.value(of: "subject") ?? "example",
                        time: RFC3339.date(from: "2026-01-01T09:00:00Z"), data: data))
            }
        }
        return events
    }
}

extension EventDescription {
    /// A value of an attribute that a rule's condition accepts; `nil` if no rule has a condition on it.
    fileprivate func value(of attribute: String) -> String? {
        let tests = users.compactMap(\.attributes).flatMap(\.fields).filter { $0.name == attribute }.map(\.test)
        for test in tests {
            guard case .leaf(let matchers) = test else { continue }
            if let value = matchers.lazy.compactMap(\.example).first(where: { test.matches(.string($0)) }) {
                return value
            }
        }
        return nil
    }
}

extension Matcher {
    /// A text that probably matches.
    fileprivate var example: String? {
        switch self {
        case .exact(let value): value.string
        case .equalsIgnoreCase(let text), .prefix(let text, _), .suffix(let text, _): text
        case .wildcard(let wildcard):
            wildcard.pieces.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "example")
        case .anythingBut, .exists: "example"
        case .numeric, .cidr: nil
        }
    }
}
