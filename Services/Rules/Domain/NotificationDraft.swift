import FoundationEssentials
import PushProtocol

/// What one rule says about one event, and to whom: a decision that has no id yet.
struct NotificationDraft: Hashable, Sendable {
    /// The rule's name.
    var rule: String
    var lane: Lane
    var content: Content
    var expiresAfter: Duration?
    var delivery: DeliveryPolicy? = nil
    /// Each recipient's badge is how much they have not read.
    var countsUnread = false
    /// Whether people notice it, and may not want it.
    var isNoise = true
    var policy = Rule.Policy()
    /// What it can be muted by, the widest first.
    var mutes: [String] = []
    /// Users, each once, at least one.
    var recipients: [Recipient]

    struct Recipient: Hashable, Sendable {
        var user: UserID
        var badge: Int?
    }

    /// The same with its ids.
    ///
    /// Every id is derived from the event, the rule and the recipient, so a redelivery of the event makes the same ones.
    /// The rule stands in them with its app: two apps may take one upstream's event and name their rules alike.
    func statement(about event: DomainEvent, arrivedAt arrival: Timestamp) -> EventCase.Statement {
        let rule = "\(event.app)/\(rule)"
        return EventCase.Statement(
            saying: Saying(
                id: DerivedID.uuid5(DerivedID.namespace, ["saying", event.source, event.id, rule]), app: event.app,
                rule: self.rule, lane: lane, content: content, mutes: mutes,
                expiresAt: expiration(of: event, arrivedAt: arrival), delivery: delivery, correlation: event.id,
                traceparent: event.traceparent),
            policy: policy, isNoise: isNoise, countsUnread: countsUnread,
            recipients: recipients.map { recipient in
                Notification.Recipient(
                    user: recipient.user,
                    notification: DerivedID.notification(
                        source: event.source, event: event.id, rule: rule, recipient: recipient.user),
                    badge: recipient.badge)
            }, source: event.source)
    }

    /// The messages that carry it if nobody minds.
    func notifications(about event: DomainEvent, arrivedAt arrival: Timestamp) -> [Notification] {
        let statement = statement(about: event, arrivedAt: arrival)
        return statement.notifications(to: statement.recipients, quietly: false)
    }

    /// The earlier of what the rule allows and what the event allows.
    private func expiration(of event: DomainEvent, arrivedAt arrival: Timestamp) -> Timestamp? {
        [expiresAfter.map { arrival + $0 }, event.expiresAt.map(Timestamp.init)].compactMap { $0 }.min()
    }
}
