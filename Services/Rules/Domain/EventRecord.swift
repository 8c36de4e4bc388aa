import FoundationEssentials
import PushProtocol

/// What is kept of an event that was decided about.
struct EventRecord: Hashable, Sendable {
    /// The same for every delivery and every copy of the event.
    var key: UUID
    var app: AppID
    var source: String
    var id: String
    var type: String
    /// The version of the rules that decided.
    var ruleSet: UUID
    var arrivedAt: Timestamp
    /// By the upstream's clock, if it says so: what orders events that tell of the same thing.
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
