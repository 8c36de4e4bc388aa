package import FoundationEssentials
package import PushProtocol
package import RuleLanguage

/// One event and its notifications, before the decision for each user.
package struct EventCase: Sendable {
    package let event: DomainEvent
    package var record: EventRecord
    package var defaults: AppDefaults
    package var signals: [Signal]
    package var pendingNotifications: [PendingNotification]

    /// A rendered notification with its recipients and policy.
    package struct PendingNotification: Sendable {
        package var rendered: RenderedNotification
        package var policy: Rule.Policy
        package var isUserVisible: Bool
        package var countsUnread: Bool
        package var recipients: [Notification.Recipient]
        /// The event's source. Message ids are derived from it.
        package var source: String
        var localization = ""
        /// The page of a fan-out. Message ids are derived from it.
        package var part = ""
        package var terms = NotificationDraft.Terms()
        package var localizer: RecipientLocalizer?
        /// Groups whose members are not in ``recipients`` yet.
        package var groupReferences: [GroupReference] = []
        var audience: Audience?
        package var broadcast: Broadcast?

        /// Whether it has an audience or a broadcast, whose users rules do not know. One message goes to all of them.
        package var hasUnknownRecipients: Bool { audience != nil || broadcast != nil }
    }

    package init(
        _ event: DomainEvent, ruleSet: RuleSet, arrivedAt arrival: Timestamp, drafts: [NotificationDraft],
        signals: [Signal] = []
    ) {
        self.event = event
        record = EventRecord(event, ruleSet: ruleSet.version, arrivedAt: arrival)
        defaults = ruleSet.defaults
        self.signals = signals
        pendingNotifications = drafts.map { $0.pending(about: event, arrivedAt: arrival) }
    }
}

extension EventCase.PendingNotification {
    /// Returns the messages to the recipients who get a push.
    ///
    /// - Parameter unread: each user's number of unread inbox items.
    package func notifications(_ answers: [UUID: RuleDecision.Answer], unread: [PersonKey: Int]) -> [Notification] {
        guard !hasUnknownRecipients else { return announcements }
        func users(_ answer: RuleDecision.Answer) -> [Notification.Recipient] {
            recipients.filter { answers[$0.notification] == answer }.map { recipient in
                guard countsUnread else { return recipient }
                var recipient = recipient
                recipient.badge = unread[PersonKey(app: rendered.app, user: recipient.user)].map(Content.badge) ?? 0
                return recipient
            }
        }
        return notifications(to: users(.push), quietly: false) + notifications(to: users(.pushQuietly), quietly: true)
    }

    /// - Parameter quietly: whether to push without sound. Such messages have different ids.
    package func notifications(to recipients: [Notification.Recipient], quietly: Bool) -> [Notification] {
        guard !hasUnknownRecipients else { return announcements }
        let rule = "\(rendered.app)/\(rendered.rule)\(localization)\(part)" + (quietly ? "/quietly" : "")
        return rendered.notifications(to: recipients, quietly: quietly) { index, _ in
            DerivedID.message(source: source, event: rendered.correlation, rule: rule, index: index)
        }
    }
}

extension EventCase.PendingNotification {
    /// The one message to an audience or a broadcast.
    ///
    /// A redelivered event gives the same message id, so it starts only one campaign.
    private var announcements: [Notification] {
        guard hasUnknownRecipients else { return [] }
        let id = DerivedID.message(
            source: source, event: rendered.correlation, rule: "\(rendered.app)/\(rendered.rule)", index: 0)
        return [
            Notification(
                trace: Trace(
                    id: id, correlation: rendered.correlation, causation: rendered.correlation,
                    traceparent: rendered.traceparent),
                app: rendered.app, rule: rendered.rule, lane: rendered.lane,
                content: rendered.preview ?? rendered.content,
                expiresAt: rendered.expiresAt, delivery: rendered.delivery, scope: rendered.scope, recipients: [],
                audience: audience, broadcast: broadcast)
        ]
    }

    /// Returns the notification with group members added after its recipients, each user once.
    package func joined(by members: [UserID]) -> EventCase.PendingNotification {
        var pending = self
        pending.groupReferences = []
        var seen = Set(recipients.map(\.user))
        let rule = "\(rendered.app)/\(rendered.rule)"
        for user in members where seen.insert(user).inserted {
            pending.recipients.append(
                Notification.Recipient(
                    user: user,
                    notification: DerivedID.notification(
                        source: source, event: rendered.correlation, rule: rule, recipient: user)))
        }
        return pending
    }

    /// Splits the notification by its recipients' languages and time zones.
    package func localized(_ people: [PersonKey: Person]) -> [EventCase.PendingNotification] {
        guard let localizer, !hasUnknownRecipients else { return [self] }
        var order: [Localization] = []
        var groups: [Localization: [Notification.Recipient]] = [:]
        for recipient in recipients {
            let settings = people[PersonKey(app: rendered.app, user: recipient.user)]?.settings
            let localization = localizer.localization(language: settings?.language, zone: settings?.zone)
            if groups[localization] == nil { order.append(localization) }
            groups[localization, default: []].append(recipient)
        }
        return order.map { localization in
            var pending = self
            pending.localizer = nil
            pending.recipients = groups[localization, default: []]
            // ``RecipientLocalizer/check()`` has rendered every language, and a time zone cannot make rendering fail.
            guard let renderedText = try? localizer.renderedText(localization) else { return pending }
            pending.localization = "/\(localization.language.tag)/\(localization.zone.name)"
            pending.rendered.id = DerivedID.uuid5(rendered.id, ["voice", pending.localization])
            pending.rendered.content = renderedText.content
            pending.rendered.preview = renderedText.preview
            return pending
        }
    }
}

extension EventCase {
    /// Checks that every message fits, as if each decision about the named users were to push.
    ///
    /// - Throws: `WireError.tooLarge` or `.tooDeep`.
    package func checkSizes() throws(WireError) {
        for notification in pendingNotifications.flatMap({ $0.notifications(to: $0.recipients, quietly: false) }) {
            _ = try notification.boundedWireBody()
        }
    }
}
