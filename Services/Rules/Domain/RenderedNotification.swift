import FoundationEssentials
import PushProtocol

/// What one rule says about one event, rendered, to users who each have an id for it.
struct RenderedNotification: Hashable, Sendable {
    /// Derived from event and rule.
    var id: UUID
    var app: AppID
    var rule: String
    var lane: Lane
    var content: Content
    /// What is pushed instead of it.
    var preview: Content?
    var mutes: [String]
    var expiresAt: Timestamp?
    var delivery: DeliveryPolicy?
    /// Which of a person's tokens are meant. What waits is never for such tokens, so it is not kept.
    var scope: String? = nil
    /// The event's id.
    var correlation: String
    var traceparent: String?

    /// The messages that carry it to these users, each to at most ``Notification/maximumRecipients``.
    ///
    /// - Parameter id: of the message with this index and these recipients.
    func notifications(
        to recipients: [Notification.Recipient], quietly: Bool, id: (Int, [Notification.Recipient]) -> UUID
    ) -> [Notification] {
        let said = preview ?? content
        let content = quietly ? said.quiet : said
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
    /// Room for everything of a notification but its content and its recipients, in bytes.
    private static let envelope = 8 * 1024
    /// Room for the recipients of one message, in bytes.
    private static let recipientsRoom = 128 * 1024

    /// Whether one message can carry it: every stage accepts so much depth and size (``WireCoding``).
    var isSendable: Bool {
        let said = preview ?? content
        // The notification is an object around the content.
        guard said.depth < WireCoding.maximumDepth else { return false }
        let room = WireCoding.maximumBodySize - RenderedNotification.envelope - RenderedNotification.recipientsRoom
        if said.maximumEncodedSize <= room { return true }
        return (try? WireCoding.encode(said)).map { $0.count <= room } ?? false
    }

    /// Recipients by message: at most ``Notification/maximumRecipients``, and as many bytes as there is room for.
    fileprivate static func parts(of recipients: [Notification.Recipient]) -> [[Notification.Recipient]] {
        var parts: [[Notification.Recipient]] = []
        var (begin, size) = (0, 0)
        for place in recipients.indices {
            // The notification's id, a badge, the names of the members; and the user's id, of which each byte may be escaped.
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
    /// A number as an icon can carry it.
    static func badge(_ count: Int) -> Int { min(count, 99_999) }

    /// The same without sound, lighting no screen.
    var quiet: Content {
        var quiet = self
        quiet.sound = nil
        quiet.interruptionLevel = .passive
        return quiet
    }
}

/// One event and everything that is said about it, to be judged user by user.
struct EventCase: Sendable {
    let event: DomainEvent
    var record: EventRecord
    var defaults: AppDefaults
    var signals: [Signal]
    var pendingNotifications: [PendingNotification]

    /// A saying and its users.
    struct PendingNotification: Sendable {
        var rendered: RenderedNotification
        var policy: Rule.Policy
        var isUserVisible: Bool
        var countsUnread: Bool
        var recipients: [Notification.Recipient]
        /// The ids of its messages are made of these.
        var source: String
        var localization = ""
        /// Which part of a crowd it is said to.
        var part = ""
        var terms = NotificationDraft.Terms()
        var localizer: RecipientLocalizer?
        /// Groups whose members are not among the recipients yet.
        var groupReferences: [GroupReference] = []
        var audience: Audience?
        var broadcast: Broadcast?

        /// Whether it is to people whom rules do not know, in one message.
        var isAnnounced: Bool { audience != nil || broadcast != nil }
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
    /// The messages to those of its users whose answer is to push.
    ///
    /// - Parameter unread: how much each person has not read.
    func notifications(_ answers: [UUID: RuleDecision.Answer], unread: [PersonKey: Int]) -> [Notification] {
        guard !isAnnounced else { return announcements }
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

    /// - Parameter quietly: makes other messages, with ids of their own.
    func notifications(to recipients: [Notification.Recipient], quietly: Bool) -> [Notification] {
        guard !isAnnounced else { return announcements }
        let rule = "\(rendered.app)/\(rendered.rule)\(localization)\(part)" + (quietly ? "/quietly" : "")
        return rendered.notifications(to: recipients, quietly: quietly) { index, _ in
            DerivedID.message(source: source, event: rendered.correlation, rule: rule, index: index)
        }
    }
}

extension EventCase.PendingNotification {
    /// The one message to an audience, or to all who follow something. It is said again when the event comes again, and begins one campaign.
    private var announcements: [Notification] {
        guard isAnnounced else { return [] }
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

    /// With these members of its groups, each once, after who is named.
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

    /// One for each voice that its people have to be spoken to in.
    func localized(_ people: [PersonKey: Person]) -> [EventCase.PendingNotification] {
        guard let localizer, !isAnnounced else { return [self] }
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
            // What it says was tried in every language; a zone cannot make it fail.
            guard let renderedText = try? localizer.renderedText(localization) else { return pending }
            pending.localization = "/\(localization.language.tag)/\(localization.zone.name)"
            pending.rendered.id = DerivedID.uuid5(rendered.id, ["voice", pending.localization])
            pending.rendered.content = renderedText.content
            pending.rendered.preview = renderedText.preview
            return pending
        }
    }
}
