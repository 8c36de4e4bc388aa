import FoundationEssentials
import PushProtocol

/// One rule's notification about one event, with its recipients and without ids.
struct NotificationDraft: Hashable, Sendable {
    /// The rule's name.
    var rule: String
    var lane: Lane
    var content: Content
    /// Replaces the content in the push if the rule's privacy is not `full`; the inbox has the content.
    var preview: Content? = nil
    /// Renders the content for each recipient; `nil`: all recipients get the same content.
    var localizer: RecipientLocalizer? = nil
    var expiresAfter: Duration?
    var delivery: DeliveryPolicy? = nil
    /// Selects among a user's tokens of one kind, such as the tokens of one Live Activity.
    var scope: String? = nil
    /// Whether each badge is the recipient's number of unread inbox items.
    var countsUnread = false
    /// Whether recipients notice the push. Preferences apply only if they do.
    var isUserVisible = true
    var policy = Rule.Policy()
    /// The names by which a user can mute the notification, the widest first.
    var mutes: [String] = []
    var terms = Terms()
    /// Users, each once.
    var recipients: [Recipient]
    /// Groups whose members are recipients too.
    var groupReferences: [GroupReference] = []
    /// Replaces users and groups.
    var audience: Audience.Members? = nil
    var followed: Broadcast.Destination? = nil

    /// Further values from the event that apply until the push.
    struct Terms: Hashable, Sendable {
        /// The item that the notification is about.
        var item: String?
        var plan: Schedule.Plan?
        var entry: Digest.Entry?
        /// The key that suppresses repeats (``Rule/Policy/Dedupe``).
        var dedupe: String?
    }

    /// Whether there are recipients.
    var hasRecipients: Bool { !recipients.isEmpty || !groupReferences.isEmpty || audience != nil || followed != nil }

    struct Recipient: Hashable, Sendable {
        var user: UserID
        var badge: Int?
    }

    /// Returns the notification with its ids.
    ///
    /// Every id is derived from event, rule and recipient, so a redelivered event gives the same ids. The ids include
    /// the app: two apps may receive the same event and use the same rule name.
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

    /// Returns the messages to the named users as if every decision were to push.
    func notifications(about event: DomainEvent, arrivedAt arrival: Timestamp) -> [Notification] {
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
