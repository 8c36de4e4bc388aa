import FoundationEssentials
import PushProtocol

/// What one rule says about one event, and to whom: a decision that has no id yet.
struct NotificationDraft: Hashable, Sendable {
    /// The rule's name.
    var rule: String
    var lane: Lane
    var content: Content
    /// What is pushed instead of the content, where not everything may leave the house.
    var preview: Content? = nil
    /// Where it is not the same for everybody.
    var localizer: RecipientLocalizer? = nil
    var expiresAfter: Duration?
    var delivery: DeliveryPolicy? = nil
    /// Which of a person's tokens are meant, of the kinds that there may be several of.
    var scope: String? = nil
    /// Each recipient's badge is how much they have not read.
    var countsUnread = false
    /// Whether people notice it, and may not want it.
    var isUserVisible = true
    var policy = Rule.Policy()
    /// What it can be muted by, the widest first.
    var mutes: [String] = []
    var terms = Terms()
    /// Users, each once.
    var recipients: [Recipient]
    /// Groups whose members hear of it too.
    var groupReferences: [GroupReference] = []
    /// Instead of both.
    var audience: Audience.Members? = nil
    var followed: Broadcast.Destination? = nil

    /// What else is known of it from the event, for the time between the event and the push.
    struct Terms: Hashable, Sendable {
        /// What it is about.
        var item: String?
        var plan: Schedule.Plan?
        var entry: Digest.Entry?
        /// What it is told once by.
        var dedupe: String?
    }

    /// Whether it is for anybody.
    var isForSomebody: Bool { !recipients.isEmpty || !groupReferences.isEmpty || audience != nil || followed != nil }

    struct Recipient: Hashable, Sendable {
        var user: UserID
        var badge: Int?
    }

    /// The same with its ids.
    ///
    /// Every id is derived from the event, the rule and the recipient, so a redelivery of the event makes the same ones.
    /// The rule stands in them with its app: two apps may take one upstream's event and name their rules alike.
    func pending(about event: DomainEvent, arrivedAt arrival: Timestamp) -> EventCase.PendingNotification {
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

    /// The messages that carry it if nobody minds.
    func notifications(about event: DomainEvent, arrivedAt arrival: Timestamp) -> [Notification] {
        let pending = pending(about: event, arrivedAt: arrival)
        return pending.notifications(to: pending.recipients, quietly: false)
    }

    /// The earlier of what the rule allows and what the event allows.
    /// What is scheduled is worth so long from when it is due.
    private func expiration(of event: DomainEvent, arrivedAt arrival: Timestamp) -> Timestamp? {
        let expiresAfter = terms.plan == nil ? expiresAfter : nil
        return [expiresAfter.map { arrival + $0 }, event.expiresAt.map(Timestamp.init)].compactMap { $0 }.min()
    }
}
