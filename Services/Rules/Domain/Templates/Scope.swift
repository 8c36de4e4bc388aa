import PushProtocol

/// The values of a template's variables.
///
/// They are the members of the event's data and, under `event`, the CloudEvents attributes: `event.id`, `event.source`,
/// `event.type`, `event.subject` and `event.time`.
struct Scope: Hashable, Sendable {
    /// The member that holds the attributes. Data cannot have a member of this name.
    static let attributes = "event"

    let root: JSONValue
    var localization: Localization
    /// The event's `time`; 0 if it has none.
    var moment = Timestamp(milliseconds: 0)

    /// Creates the scope of a digest's summary, which has other variables than an event.
    init(root: JSONValue, localization: Localization) {
        self.root = root
        self.localization = localization
    }

    init(event: DomainEvent, localization: Localization = .plain) {
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

    subscript(path: String) -> JSONValue? { root[path: path] }

    /// Returns the value at a path; throws if it is missing.
    func value(at path: String) throws(RenderError.Problem) -> JSONValue {
        guard let value = self[path] else { throw .missing(path: path) }
        return value
    }
}

extension RenderError.Problem: Error {}
