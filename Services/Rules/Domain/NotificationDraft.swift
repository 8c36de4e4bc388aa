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
    /// Users, each once, at least one.
    var recipients: [Recipient]

    struct Recipient: Hashable, Sendable {
        var user: UserID
        var badge: Int?
    }

    /// The messages that carry it, each of at most ``Notification/maximumRecipients``.
    ///
    /// Every id is derived from the event, the rule and the recipient, so a redelivery of the event makes the same ones.
    /// The rule stands in them with its app: two apps may take one upstream's event and name their rules alike.
    func notifications(about event: DomainEvent, arrivedAt arrival: Timestamp) -> [Notification] {
        let rule = "\(event.app)/\(rule)"
        let size = Notification.maximumRecipients
        return stride(from: 0, to: recipients.count, by: size).enumerated().map { index, start in
            Notification(
                trace: Trace(
                    id: DerivedID.message(source: event.source, event: event.id, rule: rule, index: index),
                    correlation: event.id, causation: event.id, traceparent: event.traceparent),
                app: event.app, rule: self.rule, lane: lane, content: content,
                expiresAt: expiration(of: event, arrivedAt: arrival), delivery: delivery,
                recipients: recipients[start..<min(start + size, recipients.count)].map { recipient in
                    Notification.Recipient(
                        user: recipient.user,
                        notification: DerivedID.notification(
                            source: event.source, event: event.id, rule: rule, recipient: recipient.user),
                        badge: recipient.badge)
                })
        }
    }

    /// The earlier of what the rule allows and what the event allows.
    private func expiration(of event: DomainEvent, arrivedAt arrival: Timestamp) -> Timestamp? {
        [expiresAfter.map { arrival + $0 }, event.expiresAt.map(Timestamp.init)].compactMap { $0 }.min()
    }
}
