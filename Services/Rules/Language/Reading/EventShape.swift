package import PushProtocol

/// One event type of a rule file, described by examples of its data.
///
/// The examples are the contract with the publisher. The reader tests every rule on them.
struct EventShape {
    /// The description for people.
    var about: String?
    /// JSON objects, at least one.
    var examples: [JSONValue]
    /// The dotted paths of all members in all examples. List elements have the path of their list.
    var paths: Set<String>

    init(examples: [JSONValue]) {
        self.examples = examples
        paths = [Scope.attributes]
        for attribute in ["id", "source", "type", "subject", "time"] {
            paths.insert("\(Scope.attributes).\(attribute)")
        }
        for example in examples { EventShape.collect(example, "", into: &paths) }
    }

    private static func collect(_ value: JSONValue, _ path: String, into paths: inout Set<String>) {
        switch value {
        case .object(let members):
            for (name, member) in members {
                let memberPath = path.isEmpty ? name : "\(path).\(name)"
                paths.insert(memberPath)
                collect(member, memberPath, into: &paths)
            }
        case .array(let elements):
            for element in elements { collect(element, path, into: &paths) }
        case .null, .bool, .int, .double, .string: break
        }
    }
}

extension RuleFileReader {
    /// The examples of each event type that the file lists.
    package var examples: [String: [JSONValue]] { catalog.mapValues(\.examples) }

    /// Reads `events`: the event types of the app.
    func events(_ field: Field) -> [String: EventShape]? {
        guard let members = members(field) else { return nil }
        var shapes: [String: EventShape] = [:]
        for (type, value) in members {
            if type == DirectNotification.eventType {
                report(value, "the event is reserved for direct notifications, which built-in rules handle; remove it")
            }
            shapes[type] = event(value)
        }
        return shapes
    }

    private func event(_ field: Field) -> EventShape {
        let table = table(field, keys: ["about", "examples"], required: ["examples"])
        let about = table?["about"].flatMap { text($0) }
        let list = table?["examples"].flatMap(list)
        if list?.isEmpty == true { report(field, "“examples” needs at least one example") }
        var shape = EventShape(examples: list?.compactMap(example) ?? [])
        shape.about = about
        return shape
    }

    private func example(_ field: Field) -> JSONValue? {
        guard let value = json(field) else { return nil }
        guard let members = value.object else {
            report(field, "an example must be an object, like an event's data")
            return nil
        }
        if members[Scope.attributes] != nil {
            report(field, "“\(Scope.attributes)” is reserved for the event's attributes; rename this member")
        }
        return value
    }
}
