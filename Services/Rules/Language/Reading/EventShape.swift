package import PushProtocol

/// One event type of a rule file, described by examples of its data.
///
/// The examples are the contract with the publisher. The reader tests every rule on them.
struct EventShape {
    /// The description for people.
    var about: String?
    /// The app whose publisher publishes the event; `nil`: this app's.
    var owner: AppID?
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
            if type == SegmentPage.eventType { report(value, "the event is reserved for segments; remove it") }
            if type == DirectNotification.eventType {
                report(value, "the event is reserved for direct notifications, which built-in rules handle; remove it")
            }
            shapes[type] = event(value)
        }
        return shapes
    }

    private func event(_ field: Field) -> EventShape {
        let table = table(field, keys: ["about", "examples", "from"], required: ["examples"])
        let about = table?["about"].flatMap { text($0) }
        let list = table?["examples"].flatMap(list)
        if list?.isEmpty == true { report(field, "“examples” needs at least one example") }
        var shape = EventShape(examples: list?.compactMap(example) ?? [])
        shape.about = about
        shape.owner = table?["from"].flatMap { owner($0) }
        return shape
    }

    private func owner(_ field: Field) -> AppID? {
        guard let name = text(field) else { return nil }
        guard let app = AppID(rawValue: name) else {
            report(field, "“from” is the id of another app: 1–63 characters of a–z, 0–9 and “-”")
            return nil
        }
        guard file != "\(name).yaml" else {
            report(field, "the event is this app's own; remove “from”")
            return nil
        }
        return app
    }

    /// The events that another app's publisher publishes, in alphabetical order.
    var borrowedEvents: [BorrowedEvent] {
        catalog.sorted { $0.key < $1.key }.compactMap { type, shape in
            shape.owner.map { BorrowedEvent(type: type, owner: $0, line: line(of: "events.\(type).from")) }
        }
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
