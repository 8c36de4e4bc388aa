package import FoundationEssentials
package import PushProtocol

/// An event under `replace`: it renders a rule's texts again, for the notifications about an item.
package struct ReplacementSource: Hashable, Sendable {
    /// The position in the rule file: `replace.0`.
    package var place: String
    package var when: Rule.Condition
    var item: Template
    /// The rule whose notifications get new texts.
    package var rule: String
}

/// A draft whose texts replace those of earlier notifications of its rule.
package struct Replacement: Hashable, Sendable {
    /// The maximum number of notifications that one event replaces. It equals the threshold of a fan-out.
    package static let maximumNotifications = 1000

    /// The lifetime of the rule's notifications.
    package var lifetime: Duration?
    /// The notification that the recipient has; `nil`: not looked up, or none.
    package var original: ReplacedNotification?
    /// Whether the item has more notifications than ``maximumNotifications``.
    package var isTooLarge = false
}

/// A notification that an event replaces, and its state when the event is decided.
package struct ReplacedNotification: Codable, Hashable, Sendable {
    package enum State: String, Codable, Sendable {
        /// Held, scheduled, or gathered for a digest.
        case waiting
        case pushed
        /// In the inbox only.
        case kept
        /// Neither pushed nor in the inbox, or part of a digest that was sent.
        case gone
    }

    package var user: UserID
    package var notification: UUID
    package var state: State
    /// Whether the registry or a provider has reported an outcome.
    package var isAnswered = false
    package var isInInbox = false
    /// Whether the user has read, opened or dismissed it.
    package var isRead = false
    package var isRevoked = false
    /// Whether a later replacement was decided before.
    package var isOvertaken = false
    package var expiresAt: Timestamp?
    package var decidedAt: Timestamp
    /// The stored texts of a held notification or an inbox item.
    package var rendered: UUID?

    package init(
        user: UserID, notification: UUID, state: State, isAnswered: Bool = false, isInInbox: Bool = false,
        isRead: Bool = false, isRevoked: Bool = false, isOvertaken: Bool = false, expiresAt: Timestamp? = nil,
        decidedAt: Timestamp, rendered: UUID? = nil
    ) {
        self.user = user
        self.notification = notification
        self.state = state
        self.isAnswered = isAnswered
        self.isInInbox = isInInbox
        self.isRead = isRead
        self.isRevoked = isRevoked
        self.isOvertaken = isOvertaken
        self.expiresAt = expiresAt
        self.decidedAt = decidedAt
        self.rendered = rendered
    }
}

extension RuleSet {
    /// Returns one draft without recipients for each rule whose texts the event renders again.
    func replacementDrafts(_ event: DomainEvent, _ scope: Scope) throws(RenderError) -> [NotificationDraft] {
        var drafts: [NotificationDraft] = []
        for source in replacements where !drafts.contains(where: { $0.rendered.rule == source.rule }) {
            if let draft = try replacementDraft(event, scope, source) { drafts.append(draft) }
        }
        return drafts
    }

    /// Returns the draft of one entry; `nil` if the event does not match or has no item.
    func replacementDraft(
        _ event: DomainEvent, _ scope: Scope, _ source: ReplacementSource
    ) throws(RenderError) -> NotificationDraft? {
        guard source.when.events.contains(event.type), source.when.holds(event), let rule = rule(named: source.rule)
        else { return nil }
        let item: String
        do {
            item = try rule.name(source.item, scope, "item")
        } catch {
            throw RenderError(rule: source.place, place: error.place, problem: error.problem)
        }
        guard !item.isEmpty else { return nil }
        do {
            return try rule.replacementDraft(event, scope, defaults, item: item)
        } catch {
            throw RenderError(rule: rule.name, place: error.place, problem: error.problem)
        }
    }
}

extension Rule {
    /// Renders the rule's texts for an event that replaces. Recipients and the original's terms are looked up later.
    fileprivate func replacementDraft(
        _ event: DomainEvent, _ scope: Scope, _ defaults: AppDefaults, item: String
    ) throws(PlacedProblem) -> NotificationDraft {
        let text = try renderedText(scope, defaults: defaults.language)
        var draft = NotificationDraft(
            rendered: RenderedNotification(
                id: event.derivedID("replacement", rule: name), app: event.app, rule: name, lane: how.lane,
                content: text.content, preview: text.preview, mutes: try mutes(scope),
                expiresAt: event.expiresAt.map(Timestamp.init), delivery: how.delivery,
                devices: try deviceSelection(scope), correlation: event.id, traceparent: event.traceparent),
            policy: policy, isUserVisible: isUserVisible, countsUnread: how.countsUnread, recipients: [],
            source: event.source)
        draft.terms.item = item
        draft.terms.entry = try policy.digest?.entry(rule: name, scope)
        draft.replacement = Replacement(lifetime: how.expiresAfter)
        draft.localizer = RecipientLocalizer(self, scope, defaults: defaults)
        try draft.localizer?.check()
        if let entry = draft.terms.entry { try checkSummary(entry, defaults) }
        return draft
    }
}

extension NotificationDraft {
    /// Returns one draft for each notification that the event replaces. Without any, the draft has one decision.
    package func replacing(_ originals: [ReplacedNotification], isTooLarge: Bool = false) -> [NotificationDraft] {
        guard replacement != nil else { return [self] }
        var draft = self
        guard !isTooLarge, !originals.isEmpty else {
            draft.replacement?.isTooLarge = isTooLarge
            draft.isOfNobody = true
            return [draft]
        }
        return originals.map { original in
            var draft = self
            let id = original.notification.uuidString.lowercased()
            draft.replacement?.original = original
            draft.recipients = [
                Notification.Recipient(user: original.user, notification: notificationID(of: original.user))
            ]
            draft.part = "/replaces/\(id)"
            draft.rendered.id = DerivedID.uuid5(rendered.id, ["replaces", id])
            let ends = [original.expiresAt, rendered.expiresAt].compactMap(\.self)
            draft.rendered.expiresAt = ends.min()
            return draft
        }
    }

    /// The identifier on the phone, which the original has too: the collapse key, or the original's id.
    package var replacedIdentifier: String? {
        replacement?.original.map {
            rendered.content.collapseKey ?? $0.notification.uuidString.lowercased()
        }
    }
}
