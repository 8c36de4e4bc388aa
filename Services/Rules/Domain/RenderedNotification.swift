import FoundationEssentials
import PushProtocol

/// One rule's rendered notification about one event, without its recipients.
struct RenderedNotification: Hashable, Sendable {
    /// Derived from event and rule.
    var id: UUID
    var app: AppID
    var rule: String
    var lane: Lane
    var content: Content
    /// Replaces ``content`` in the push.
    var preview: Content?
    var mutes: [String]
    var expiresAt: Timestamp?
    var delivery: DeliveryPolicy?
    /// Selects among a user's tokens of one kind. Not stored, because notifications with a scope are never held.
    var scope: String? = nil
    /// The event's id.
    var correlation: String
    var traceparent: String?

    /// Returns the messages to these recipients, at most ``Notification/maximumRecipients`` in each.
    ///
    /// - Parameter id: returns the id of a message from its index and recipients.
    func notifications(
        to recipients: [Notification.Recipient], quietly: Bool, id: (Int, [Notification.Recipient]) -> UUID
    ) -> [Notification] {
        let pushedContent = preview ?? content
        let content = quietly ? pushedContent.quiet : pushedContent
        return RenderedNotification.parts(of: recipients).enumerated().map { index, recipients in
            Notification(
                trace: Trace(
                    id: id(index, recipients), correlation: correlation, causation: correlation,
                    traceparent: traceparent),
                app: app, rule: rule, lane: lane, content: content, expiresAt: expiresAt, delivery: delivery,
                scope: scope, recipients: recipients)
        }
    }
}

extension RenderedNotification {
    /// The maximum size of a notification without content and recipients, in bytes.
    private static let envelope = 8 * 1024
    /// The maximum size of the recipients of one message, in bytes.
    private static let recipientsRoom = 128 * 1024

    /// Whether one message can carry the notification within the limits of depth and size (``WireCoding``).
    var isSendable: Bool {
        let pushedContent = preview ?? content
        // The notification is an object around the content.
        guard pushedContent.depth < WireCoding.maximumDepth else { return false }
        let room = WireCoding.maximumBodySize - RenderedNotification.envelope - RenderedNotification.recipientsRoom
        if pushedContent.maximumEncodedSize <= room { return true }
        return (try? WireCoding.encode(pushedContent)).map { $0.count <= room } ?? false
    }

    /// Splits recipients into messages by ``Notification/maximumRecipients`` and ``recipientsRoom``.
    fileprivate static func parts(of recipients: [Notification.Recipient]) -> [[Notification.Recipient]] {
        var parts: [[Notification.Recipient]] = []
        var (begin, size) = (0, 0)
        for place in recipients.indices {
            // Ids, badge and member names take at most 96 bytes. Escapes can double the bytes of the user id.
            let bytes = 96 + 2 * recipients[place].user.rawValue.utf8.count
            if place > begin, size + bytes > recipientsRoom || place - begin == Notification.maximumRecipients {
                parts.append(Array(recipients[begin..<place]))
                (begin, size) = (place, 0)
            }
            size += bytes
        }
        guard begin < recipients.count else { return parts }
        return begin == 0 ? [recipients] : parts + [Array(recipients[begin...])]
    }
}

extension Content {
    /// Limits a badge to 99,999.
    static func badge(_ count: Int) -> Int { min(count, 99_999) }

    /// This content without sound, at the interruption level `passive`.
    var quiet: Content {
        var quiet = self
        quiet.sound = nil
        quiet.interruptionLevel = .passive
        return quiet
    }
}

/// One event and its notifications, before the decision for each user.
struct EventCase: Sendable {
    let event: DomainEvent
    var record: EventRecord
    var defaults: AppDefaults
    var signals: [Signal]
    var pendingNotifications: [PendingNotification]

    /// A rendered notification with its recipients and policy.
    struct PendingNotification: Sendable {
        var rendered: RenderedNotification
        var policy: Rule.Policy
        var isUserVisible: Bool
        var countsUnread: Bool
        var recipients: [Notification.Recipient]
        /// The event's source. Message ids are derived from it.
        var source: String
        var localization = ""
        /// The page of a fan-out. Message ids are derived from it.
        var part = ""
        var terms = NotificationDraft.Terms()
        var localizer: RecipientLocalizer?
        /// Groups whose members are not in ``recipients`` yet.
        var groupReferences: [GroupReference] = []
        var audience: Audience?
        var broadcast: Broadcast?

        /// Whether it has an audience or a broadcast, whose users rules do not know. One message goes to all of them.
        var hasUnknownRecipients: Bool { audience != nil || broadcast != nil }
    }

    init(
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
    func notifications(_ answers: [UUID: RuleDecision.Answer], unread: [PersonKey: Int]) -> [Notification] {
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
    func notifications(to recipients: [Notification.Recipient], quietly: Bool) -> [Notification] {
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
    func joined(by members: [UserID]) -> EventCase.PendingNotification {
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
    func localized(_ people: [PersonKey: Person]) -> [EventCase.PendingNotification] {
        guard let localizer, !hasUnknownRecipients else { return [self] }
        var order: [Localization] = []
        var groups: [Localization: [Notification.Recipient]] = [:]
        for recipient in recipients {
            let settings = people[PersonKey(app: rendered.app, user: recipient.user)]?.settings
            let localization = localizer.localization(for: settings ?? PersonalSettings())
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
