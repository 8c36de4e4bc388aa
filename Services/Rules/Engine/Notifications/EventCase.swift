package import FoundationEssentials
package import PushProtocol
package import RuleLanguage

/// One event and its notifications, before the decision for each user.
package struct EventCase: Sendable {
    package let event: DomainEvent
    package var record: EventRecord
    package var defaults: AppDefaults
    package var signals: [Signal]
    package var drafts: [NotificationDraft]
    /// Whether the items of the event are stored, because the app's rules revoke items or complete them by receipts.
    package var storesItems: Bool
    /// The stopped variants of the rules (``RuleSet/stops``).
    package var stops: [String: Timestamp]

    package init(
        _ event: DomainEvent, ruleSet: RuleSet, arrivedAt arrival: Timestamp, drafts: [NotificationDraft],
        signals: [Signal] = []
    ) {
        self.event = event
        record = EventRecord(event, ruleSet: ruleSet.version, arrivedAt: arrival)
        defaults = ruleSet.defaults
        self.signals = signals
        self.drafts = drafts
        storesItems = ruleSet.storesItems
        stops = ruleSet.stops
    }
}

extension NotificationDraft {
    /// Returns the messages to the recipients who get a push.
    ///
    /// - Parameter unread: each user's number of unread inbox items.
    package func notifications(_ answers: [UUID: RuleDecision.Answer], unread: [PersonKey: Int]) -> [Notification] {
        guard !hasUnknownRecipients else { return isAnnounced(answers) ? announcements : [] }
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

    /// Whether the message to an audience or a broadcast is published. It is not if its event was revoked before.
    package func isAnnounced(_ answers: [UUID: RuleDecision.Answer]) -> Bool {
        guard let id = audience?.campaign ?? segment?.audience.campaign ?? broadcast?.notification else { return false }
        return answers[id] != .drop
    }

    /// - Parameter quietly: whether to push without sound. Such messages have different ids.
    package func notifications(to recipients: [Notification.Recipient], quietly: Bool) -> [Notification] {
        guard !hasUnknownRecipients else { return announcements }
        let rule = "\(rendered.app)/\(rendered.rule)\(localization)\(part)" + (quietly ? "/quietly" : "")
        return identified.notifications(to: recipients, quietly: quietly) { index, _ in
            DerivedID.message(source: source, event: rendered.correlation, rule: rule, index: index)
        }
    }
}

extension NotificationDraft {
    /// The one message to an audience or a broadcast.
    ///
    /// A redelivered event gives the same message id, so it starts only one campaign.
    private var announcements: [Notification] {
        guard hasUnknownRecipients, !isOfNobody else { return [] }
        let id = DerivedID.message(
            source: source, event: rendered.correlation, rule: "\(rendered.app)/\(rendered.rule)", index: 0)
        return [
            Notification(
                trace: Trace(
                    id: id, correlation: rendered.correlation, causation: rendered.correlation,
                    traceparent: rendered.traceparent),
                app: rendered.app, rule: rendered.rule, lane: rendered.lane,
                content: segment.map { Content(data: ["event": $0.event]) } ?? rendered.preview ?? rendered.content,
                expiresAt: segment == nil ? rendered.expiresAt : nil, delivery: rendered.delivery,
                scope: rendered.scope, recipients: [],
                audience: audience ?? segment?.audience, broadcast: broadcast)
        ]
    }

    /// Returns the notification with group members added after its recipients, each user once.
    package func joined(by members: [UserID]) -> NotificationDraft {
        var draft = self
        draft.groupReferences = []
        draft.append(members)
        return draft
    }

    /// Splits the notification by its recipients' languages and time zones, or by recipient if each has their own text.
    package func localized(_ people: [PersonKey: Person]) -> [NotificationDraft] {
        guard let localizer, !hasUnknownRecipients else { return [self] }
        var order: [TextKey] = []
        var groups: [TextKey: [Notification.Recipient]] = [:]
        for recipient in recipients {
            let settings = people[PersonKey(app: rendered.app, user: recipient.user)]?.settings
            let localization = localizer.localization(language: settings?.language, zone: settings?.zone)
            let key = TextKey(localization: localization, user: localizer.isPersonal ? recipient.user : nil)
            if groups[key] == nil { order.append(key) }
            groups[key, default: []].append(recipient)
        }
        return order.map { key in
            var draft = self
            draft.localizer = nil
            draft.recipients = groups[key, default: []]
            // ``RecipientLocalizer/check()`` has rendered every language, and a time zone cannot make rendering fail.
            guard let renderedText = try? localizer.renderedText(key.localization, for: key.user) else { return draft }
            draft.localization = key.idPart
            if let user = key.user, draft.terms.entry != nil {
                draft.terms.entry = (try? localizer.entry(for: user)) ?? draft.terms.entry
            }
            draft.rendered.id = DerivedID.uuid5(rendered.id, ["voice", draft.localization])
            draft.rendered.content = renderedText.content
            draft.rendered.preview = renderedText.preview
            return draft
        }
    }
}

/// The key of one text among the texts of a notification.
private struct TextKey: Hashable {
    var localization: Localization
    /// The recipient, if each recipient has their own text.
    var user: UserID?

    /// The part of message ids that distinguishes the texts.
    var idPart: String {
        "/\(localization.language.tag)/\(localization.zone.name)" + (user.map { "/to/\($0.rawValue)" } ?? "")
    }
}

extension EventCase {
    /// Checks that every message fits, as if each decision about the named users were to push.
    ///
    /// - Throws: `WireError.tooLarge` or `.tooDeep`.
    package func checkSizes() throws(WireError) {
        for notification in drafts.flatMap({ $0.notifications(to: $0.recipients, quietly: false) }) {
            _ = try notification.boundedWireBody()
        }
        try checkReplacementSizes()
    }
}
