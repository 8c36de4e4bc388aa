package import FoundationEssentials
package import PushProtocol
import RuleLanguage

extension DecisionWrites {
    /// Marks inbox items of this batch as read if the event reports a read.
    package mutating func read(_ event: EventCase) {
        for signal in event.signals {
            guard case .read(let user, let thread) = signal else { continue }
            let reader = PersonKey(app: event.record.app, user: user)
            for index in inbox.indices where inbox[index].person == reader {
                if thread == nil || inbox[index].thread == thread { inbox[index].isRead = true }
            }
        }
    }

    /// Adds the effects of an event's decisions. Every alert enters the inbox when it is due, whether or not it is
    /// pushed. Gathered notifications enter it as part of their digest.
    package mutating func add(
        _ event: EventCase, _ decided: [DecisionRecord], _ people: [PersonKey: Person], spread: Duration
    ) {
        decisions += decided
        var rest = decided[...]
        for draft in event.drafts {
            guard !draft.hasUnknownRecipients else {
                rest = rest.dropFirst()
                continue
            }
            if draft.replacement != nil {
                for decided in rest.prefix(draft.recipients.count) { replace(draft, decided) }
                rest = rest.dropFirst(draft.recipients.count)
                continue
            }
            var isReferred = false
            for (recipient, decided) in zip(draft.recipients, rest.prefix(draft.recipients.count)) {
                let person = people[decided.person] ?? Person()
                let isDue = draft.isKeptNow(decided.decision)
                if isDue, event.defaults.keeps(draft.policy, for: person.settings) {
                    isReferred = true
                    inbox.append(
                        Kept(
                            notification: recipient.notification, person: decided.person, rendered: draft.rendered.id,
                            thread: draft.rendered.content.thread))
                }
                if let held = Held(draft, recipient, decided, event.record, isKept: isDue, spread: spread) {
                    isReferred = true
                    hold(held)
                }
                if decided.decision.answer == .digest,
                    let gathered = Gathered(draft, recipient, decided, event, person, now: decidedAt)
                {
                    self.gathered.append(gathered)
                }
                if draft.policy.isReported {
                    reports.append(
                        Report(
                            notification: recipient.notification, person: decided.person, rule: draft.rendered.rule,
                            correlation: draft.rendered.correlation))
                }
            }
            rest = rest.dropFirst(draft.recipients.count)
            if isReferred { renderedNotifications.append(draft.rendered) }
        }
    }

    /// Adds a held notification. It replaces those of this batch about the same item.
    private mutating func hold(_ new: Held) {
        if let item = new.item {
            for old in held where old.person == new.person && old.rule == new.rule && old.item == item {
                decisions.append(old.decided(.replaced))
            }
            held.removeAll { $0.person == new.person && $0.rule == new.rule && $0.item == item }
        }
        held.append(new)
    }
}

extension NotificationDraft {
    /// Whether the notification enters the inbox now.
    fileprivate func isKeptNow(_ decision: RuleDecision) -> Bool {
        guard isUserVisible, policy.inbox else { return false }
        switch decision.reason {
        case .scheduled, .gathered: return false
        default: return decision.answer.isKept
        }
    }
}

extension DecisionWrites.Held {
    fileprivate init?(
        _ draft: NotificationDraft, _ recipient: Notification.Recipient, _ decided: DecisionRecord,
        _ record: EventRecord,
        isKept: Bool, spread: Duration
    ) {
        guard let dueAt = decided.decision.dueAt(recipient.notification, spread: spread) else { return nil }
        let isScheduled = decided.decision.reason == .scheduled
        self.init(
            notification: recipient.notification, person: decided.person, rule: draft.rendered.rule,
            rendered: draft.rendered.id, event: record.key, badge: recipient.badge,
            kind: isScheduled ? .scheduled : .held, item: draft.terms.item, saidAt: record.occurredAt,
            since: isScheduled ? dueAt : nil, dueAt: dueAt, isKept: isKept || !draft.policy.inbox,
            isByQuietHours: decided.decision.reason == .quietHours, entry: draft.terms.entry)
    }
}

extension DecisionWrites.Gathered {
    fileprivate init?(
        _ draft: NotificationDraft, _ recipient: Notification.Recipient, _ decided: DecisionRecord,
        _ event: EventCase,
        _ person: Person, now: Timestamp
    ) {
        guard let entry = draft.terms.entry, let digest = draft.policy.digest else { return nil }
        let due = draft.due(for: person, event.defaults) ?? now
        self.init(
            key: BucketKey(person: decided.person, bucket: entry.bucket), rule: draft.rendered.rule,
            item: Bucket.Item(
                name: draft.terms.item ?? recipient.notification.uuidString.lowercased(),
                notification: recipient.notification, event: event.record.key,
                correlation: draft.rendered.correlation, values: entry.values, saidAt: event.record.occurredAt,
                from: max(due, now), end: draft.end(for: person, event.defaults)),
            digest: digest, zone: event.defaults.zone)
    }
}

extension RuleDecision {
    /// The time over which the service spreads the end of quiet hours.
    package static let spread = Duration.seconds(600)

    /// When a held notification is decided again. The end of quiet hours is spread over `spread`, at an offset that
    /// follows from the notification's id.
    package func dueAt(_ notification: UUID, spread: Duration) -> Timestamp? {
        guard case .hold(let until) = answer else { return nil }
        guard reason == .quietHours else { return until }
        let share = Double(UInt16(notification.uuid.0) << 8 | UInt16(notification.uuid.1)) / 65_536
        return until + spread * share
    }
}
