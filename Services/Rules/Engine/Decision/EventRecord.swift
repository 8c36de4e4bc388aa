package import FoundationEssentials
package import PushProtocol

/// The stored record of an event that the rules decided.
package struct EventRecord: Hashable, Sendable {
    /// Derived from app, source and id: equal for redeliveries and duplicates of the event.
    package var key: UUID
    package var app: AppID
    package var source: String
    package var id: String
    package var type: String
    /// The version of the rules that decided the event.
    package var ruleSet: UUID
    package var arrivedAt: Timestamp
    /// The event's `time`, or else its arrival. Orders events about the same item.
    package var occurredAt: Timestamp

    package init(_ event: DomainEvent, ruleSet: UUID, arrivedAt arrival: Timestamp) {
        key = EventRecord.key(of: event)
        app = event.app
        source = event.source
        id = event.id
        type = event.type
        self.ruleSet = ruleSet
        arrivedAt = arrival
        occurredAt = event.time.map(Timestamp.init) ?? arrival
    }

    package static func key(of event: DomainEvent) -> UUID {
        DerivedID.uuid5(DerivedID.namespace, ["event", event.app.rawValue, event.source, event.id])
    }
}
