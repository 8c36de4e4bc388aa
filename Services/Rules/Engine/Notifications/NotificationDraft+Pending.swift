package import PushProtocol
package import RuleLanguage
import FoundationEssentials

extension NotificationDraft {
    /// Returns the notification with its ids.
    ///
    /// Every id is derived from event, rule and recipient, so a redelivered event gives the same ids. The ids include
    /// the app: two apps may receive the same event and use the same rule name.
    package func pending(about event: DomainEvent, arrivedAt arrival: Timestamp) -> EventCase.PendingNotification {
        let rule = "\(event.app)/\(rule)"
        return EventCase.PendingNotification(
            rendered: RenderedNotification(
                id: DerivedID.uuid5(DerivedID.namespace, ["saying", event.source, event.id, rule]), app: event.app,
                rule: self.rule, lane: lane, content: content, preview: preview, mutes: mutes,
                expiresAt: expiration(of: event, arrivedAt: arrival), delivery: delivery, scope: scope,
                correlation: event.id, traceparent: event.traceparent),
            policy: policy, isUserVisible: isUserVisible, countsUnread: countsUnread,
            recipients: recipients.map { recipient in
                Notification.Recipient(
                    user: recipient.user,
                    notification: DerivedID.notification(
                        source: event.source, event: event.id, rule: rule, recipient: recipient.user),
                    badge: recipient.badge)
            }, source: event.source, terms: terms, localizer: localizer, groupReferences: groupReferences,
            audience: audience.map { members in
                Audience(
                    campaign: DerivedID.uuid5(DerivedID.namespace, ["campaign", event.source, event.id, rule]),
                    members: members)
            },
            broadcast: followed.map { followed in
                Broadcast(
                    notification: DerivedID.uuid5(
                        DerivedID.namespace, ["broadcast", event.source, event.id, rule]),
                    to: followed)
            })
    }

    /// Returns the messages to the named users as if every decision were to push.
    package func notifications(about event: DomainEvent, arrivedAt arrival: Timestamp) -> [Notification] {
        let pending = pending(about: event, arrivedAt: arrival)
        return pending.notifications(to: pending.recipients, quietly: false)
    }

    /// Returns the earlier expiry of the rule and the event.
    ///
    /// The rule's expiry of a scheduled notification starts when it is due, so it does not count here.
    private func expiration(of event: DomainEvent, arrivedAt arrival: Timestamp) -> Timestamp? {
        let expiresAfter = terms.plan == nil ? expiresAfter : nil
        return [expiresAfter.map { arrival + $0 }, event.expiresAt.map(Timestamp.init)].compactMap { $0 }.min()
    }
}
