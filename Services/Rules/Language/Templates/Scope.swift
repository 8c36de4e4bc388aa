package import PushProtocol

/// The values of a template's variables.
///
/// They are the members of the event's data and, under `event`, the CloudEvents attributes: `event.id`, `event.source`,
/// `event.type`, `event.subject` and `event.time`.
package struct Scope: Hashable, Sendable {
    /// The member that holds the attributes. Data cannot have a member of this name.
    static let attributes = "event"

    package let root: JSONValue
    package var localization: Localization
    /// The event's `time`; 0 if it has none.
    package var moment = Timestamp(milliseconds: 0)

    /// Creates the scope of a digest's summary, which has other variables than an event.
    package init(root: JSONValue, localization: Localization) {
        self.root = root
        self.localization = localization
    }

    package init(event: DomainEvent, localization: Localization = .plain) {
        self.localization = localization
        var members = event.data.object ?? [:]
        members[Scope.attributes] = .object([
            "id": .string(event.id), "source": .string(event.source), "type": .string(event.type),
            "subject": event.subject.map(JSONValue.string) ?? .null,
            "time": event.time.map { .string(RFC3339.string(from: $0)) } ?? .null,
        ])
        root = .object(members)
        if let time = event.time { moment = Timestamp(time) }
    }

    /// The scope of the same event, as if it happened later.
    func delayed(by delay: Duration) -> Scope {
        guard delay != .zero else { return self }
        var members = root.object ?? [:]
        if var attributes = members[Scope.attributes]?.object, attributes["time"]?.string != nil {
            attributes["time"] = .string(RFC3339.string(from: (moment + delay).date))
            members[Scope.attributes] = .object(attributes)
        }
        var scope = Scope(root: .object(members), localization: localization)
        scope.moment = moment + delay
        return scope
    }

    package subscript(path: String) -> JSONValue? { root[path: path] }

    /// Returns the value at a path; throws if it is missing.
    package func value(at path: String) throws(RenderError.Problem) -> JSONValue {
        guard let value = self[path] else { throw .missing(path: path) }
        return value
    }
}

extension RenderError.Problem: Error {}
