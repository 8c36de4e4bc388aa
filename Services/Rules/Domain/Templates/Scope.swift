import PushProtocol

/// What a template's variables are looked up in: the members of the event's data, and the event's own attributes under
/// `event` (`event.id`, `event.source`, `event.type`, `event.subject`, `event.time`).
struct Scope: Hashable, Sendable {
    /// The member that holds the attributes; data cannot have one of that name.
    static let attributes = "event"

    let root: JSONValue
    var localization: Localization
    /// When it happened.
    var moment = Timestamp(milliseconds: 0)

    /// Of a summary, whose variables are not an event's.
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

    /// The value at a path that must exist.
    func value(at path: String) throws(RenderError.Problem) -> JSONValue {
        guard let value = self[path] else { throw .missing(path: path) }
        return value
    }
}

extension RenderError.Problem: Error {}
