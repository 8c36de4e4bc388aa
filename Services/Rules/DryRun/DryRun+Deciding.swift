import FoundationEssentials
import PushProtocol
import RuleEngine
import RuleLanguage

extension DryRun {
    mutating func predictDecisions(_ event: EventCase, _ now: Timestamp) {
        var event = event
        event.drafts = event.drafts.map { draft in
            guard !draft.groupReferences.isEmpty else { return draft }
            let users = draft.groupReferences.flatMap { groupReference in
                (groups[GroupKey(app: event.record.app, group: groupReference.group)]?.members ?? []).filter(
                    groupReference.accepts
                )
                .map(\.user)
            }
            return draft.joined(by: users)
        }
        event.drafts = event.drafts.flatMap { replacing($0, event.record, now) }
        let news = news(of: event, now)
        event.drafts = event.drafts.flatMap { $0.localized(people) }
        let decided = event.decisions(&people, news, now: now)
        var writes = DecisionWrites(decidedAt: now)
        writes.add(event, decided, people, spread: spread)
        keep(writes, now)
        replace(writes.replacedWords)
        let kept = Set(writes.inbox.map(\.notification))
        var rest = decided[...]
        for draft in event.drafts {
            noteOriginals(draft, event.record)
            if event.storesItems, let item = draft.item {
                for recipient in draft.recipients { about[recipient.notification] = (item, event.record.occurredAt) }
            }
            // An audience or a broadcast has one decision.
            let badges = draft.hasUnknownRecipients ? [nil] : draft.recipients.map(\.badge)
            let broadcast = draft.broadcast == nil ? nil : draft.notifications([:], unread: [:]).first
            for (decided, badge) in zip(rest.prefix(badges.count), badges) {
                tell(
                    decided, draft.identified, badge: draft.countsUnread ? count(decided.person) : badge,
                    isKept: kept.contains(decided.notification), now, asBroadcast: broadcast)
            }
            rest = rest.dropFirst(badges.count)
        }
    }

    /// The badge of a user whose icon shows the unread count.
    func count(_ person: PersonKey) -> Int { Content.badge(unread[person]?.count ?? 0) }

    /// Records inbox items, held notifications and digest items.
    mutating func keep(_ writes: DecisionWrites, _ now: Timestamp) {
        let rendered = Dictionary(writes.renderedNotifications.map { ($0.id, $0) }) { first, _ in first }
        for kept in writes.inbox { unread[kept.person, default: []].append(kept) }
        for held in writes.held {
            guard let rendered = rendered[held.rendered] else { continue }
            waiting.append(HeldItem(held, rendered, now))
        }
        for one in writes.gathered { gather(one, now) }
    }

    /// - Parameter broadcast: the broadcast message, if the decision is about a broadcast.
    mutating func tell(
        _ decided: DecisionRecord, _ rendered: RenderedNotification, badge: Int?, isKept: Bool, _ now: Timestamp,
        asBroadcast broadcast: Notification? = nil
    ) {
        let recipient = Notification.Recipient(
            user: decided.person.user, notification: decided.notification, badge: badge)
        func pushed(quietly: Bool) -> Notification? {
            rendered.notifications(to: [recipient], quietly: quietly) { _, _ in decided.notification }.first
        }
        let notification: Notification? =
            switch decided.decision.answer {
            case .push where decided.decision.reason == .segment: nil
            case .push: broadcast ?? pushed(quietly: false)
            case .pushQuietly: pushed(quietly: true)
            case .hold, .digest, .inbox, .drop: nil
            }
        predictions.append(
            PredictedDecision(
                at: now, app: decided.person.app, event: rendered.correlation, rule: decided.rule,
                user: decided.person.user,
                decision: decided.decision, notification: notification, kept: isKept ? rendered.content : nil,
                id: decided.notification))
    }
}

extension HeldItem {
    init(_ held: DecisionWrites.Held, _ rendered: RenderedNotification, _ now: Timestamp) {
        self.init(
            rendered: rendered,
            recipient: Notification.Recipient(
                user: held.person.user, notification: held.notification, badge: held.badge),
            event: held.event, since: held.since ?? now, quietHolds: held.isByQuietHours ? 1 : 0, step: 1,
            kind: held.kind, item: held.item, saidAt: held.saidAt, isKept: held.isKept, entry: held.entry,
            dueAt: held.dueAt)
    }
}
