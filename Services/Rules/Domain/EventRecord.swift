import FoundationEssentials
import PushProtocol

/// The stored record of an event that the rules decided.
struct EventRecord: Hashable, Sendable {
    /// Derived from app, source and id: equal for redeliveries and duplicates of the event.
    var key: UUID
    var app: AppID
    var source: String
    var id: String
    var type: String
    /// The version of the rules that decided the event.
    var ruleSet: UUID
    var arrivedAt: Timestamp
    /// The event's `time`, or else its arrival. Orders events about the same item.
    var occurredAt: Timestamp

    init(_ event: DomainEvent, ruleSet: UUID, arrivedAt arrival: Timestamp) {
        key = EventRecord.key(of: event)
        app = event.app
        source = event.source
        id = event.id
        type = event.type
        self.ruleSet = ruleSet
        arrivedAt = arrival
        occurredAt = event.time.map(Timestamp.init) ?? arrival
    }

    static func key(of event: DomainEvent) -> UUID {
        DerivedID.uuid5(DerivedID.namespace, ["event", event.app.rawValue, event.source, event.id])
    }
}
