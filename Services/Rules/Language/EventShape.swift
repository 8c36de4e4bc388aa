import PushProtocol

/// What a rule file says about one event type: examples of its data. They tell the upstream what to send, and every rule
/// is tried on them before it is taken.
struct EventShape {
    /// Objects, at least one.
    var examples: [JSONValue]
    /// The dotted path of every member of every example, elements of lists counting as one.
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
    /// The events an app knows, by type.
    func events(_ field: Field) -> [String: EventShape]? {
        guard let members = members(field) else { return nil }
        var shapes: [String: EventShape] = [:]
        for (type, value) in members { shapes[type] = event(value) }
        return shapes
    }

    private func event(_ field: Field) -> EventShape {
        let table = table(field, keys: ["about", "examples"], required: ["examples"])
        _ = table?["about"].map { text($0) }
        let list = table?["examples"].flatMap(list)
        if list?.isEmpty == true { report(field, "“examples” needs at least one") }
        return EventShape(examples: list?.compactMap(example) ?? [])
    }

    private func example(_ field: Field) -> JSONValue? {
        guard let value = json(field) else { return nil }
        guard let members = value.object else {
            report(field, "an example is an object, as an event's data is")
            return nil
        }
        if members[Scope.attributes] != nil {
            report(field, "“\(Scope.attributes)” is what rules call the event's own attributes; name it differently")
        }
        return value
    }
}
