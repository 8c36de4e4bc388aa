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
    var decisions: [Decision]

    /// One user who is to be told, and by which rule.
    struct Decision: Hashable, Sendable {
        var notification: UUID
        var rule: String
        var user: UserID
    }

    init(_ event: DomainEvent, ruleSet: UUID, arrivedAt arrival: Timestamp, notifications: [Notification]) {
        key = DerivedID.uuid5(DerivedID.namespace, ["event", event.app.rawValue, event.source, event.id])
        app = event.app
        source = event.source
        id = event.id
        type = event.type
        self.ruleSet = ruleSet
        arrivedAt = arrival
        decisions = notifications.flatMap { notification in
            notification.recipients.map {
                Decision(notification: $0.notification, rule: notification.rule, user: $0.user)
            }
        }
    }
}
