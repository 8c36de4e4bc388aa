import FoundationEssentials
import PushProtocol

extension RulingWrites {
    /// What this batch put into inboxes before somebody read them.
    mutating func read(_ event: EventCase) {
        for signal in event.signals {
            guard case .read(let user, let thread) = signal else { continue }
            let reader = PersonKey(app: event.record.app, user: user)
            for index in inbox.indices where inbox[index].person == reader {
                if thread == nil || inbox[index].thread == thread { inbox[index].isRead = true }
            }
        }
    }

    /// What an event's decisions leave behind: every alert is to be found in the inbox, whether or not it is pushed, from
    /// when it is due; what is summed up is found in its summary.
    mutating func add(
        _ event: EventCase, _ ruled: [Ruled], _ people: [PersonKey: Person], spread: Duration
    ) {
        decisions += ruled
        var rest = ruled[...]
        for statement in event.statements {
            guard !statement.isAnnounced else {
                rest = rest.dropFirst()
                continue
            }
            var isReferred = false
            for (recipient, ruled) in zip(statement.recipients, rest.prefix(statement.recipients.count)) {
                let person = people[ruled.person] ?? Person()
                let isDue = statement.isKeptNow(ruled.judgement)
                if isDue, event.house.keeps(statement.policy, for: person.settings) {
                    isReferred = true
                    inbox.append(
                        Kept(
                            notification: recipient.notification, person: ruled.person, saying: statement.saying.id,
                            thread: statement.saying.content.thread))
                }
                if let held = Held(statement, recipient, ruled, event.record, isKept: isDue, spread: spread) {
                    isReferred = true
                    hold(held)
                }
                if ruled.judgement.answer == .digest,
                    let gathered = Gathered(statement, recipient, ruled, event, person, now: decidedAt)
                {
                    self.gathered.append(gathered)
                }
                if statement.policy.isReported {
                    reports.append(
                        Report(
                            notification: recipient.notification, person: ruled.person, rule: statement.saying.rule,
                            correlation: statement.saying.correlation))
                }
            }
            rest = rest.dropFirst(statement.recipients.count)
            if isReferred { sayings.append(statement.saying) }
        }
    }

    /// Keeps what waits. What waits about the same already, also from this batch, makes way for it.
    private mutating func hold(_ new: Held) {
        if let item = new.item {
            for old in held where old.person == new.person && old.rule == new.rule && old.item == item {
                decisions.append(old.ruled(.replaced))
            }
            held.removeAll { $0.person == new.person && $0.rule == new.rule && $0.item == item }
        }
        held.append(new)
    }
}

extension EventCase.Statement {
    /// Whether the inbox has it from now on.
    fileprivate func isKeptNow(_ judgement: Judgement) -> Bool {
        guard isNoise, policy.inbox else { return false }
        switch judgement.reason {
        case .scheduled, .gathered: return false
        default: return judgement.answer.isKept
        }
    }
}

extension RulingWrites.Held {
    fileprivate init?(
        _ statement: EventCase.Statement, _ recipient: Notification.Recipient, _ ruled: Ruled, _ record: EventRecord,
        isKept: Bool, spread: Duration
    ) {
        guard let dueAt = ruled.judgement.dueAt(recipient.notification, spread: spread) else { return nil }
        let isScheduled = ruled.judgement.reason == .scheduled
        self.init(
            notification: recipient.notification, person: ruled.person, rule: statement.saying.rule,
            saying: statement.saying.id, event: record.key, badge: recipient.badge,
            kind: isScheduled ? .scheduled : .held, item: statement.terms.item, saidAt: record.occurredAt,
            since: isScheduled ? dueAt : nil, dueAt: dueAt, isKept: isKept || !statement.policy.inbox,
            isByQuietHours: ruled.judgement.reason == .quietHours, entry: statement.terms.entry)
    }
}

extension RulingWrites.Gathered {
    fileprivate init?(
        _ statement: EventCase.Statement, _ recipient: Notification.Recipient, _ ruled: Ruled, _ event: EventCase,
        _ person: Person, now: Timestamp
    ) {
        guard let entry = statement.terms.entry, let digest = statement.policy.digest else { return nil }
        let due = statement.due(for: person, event.house) ?? now
        self.init(
            person: ruled.person, rule: statement.saying.rule, bucket: entry.bucket,
            item: statement.terms.item ?? recipient.notification.uuidString.lowercased(),
            notification: recipient.notification, event: event.record.key, correlation: statement.saying.correlation,
            values: entry.values, saidAt: event.record.occurredAt, from: max(due, now),
            end: statement.end(for: person, event.house), digest: digest, zone: event.house.zone)
    }
}

extension Judgement {
    /// When what is held is judged again. The end of quiet hours is everybody's at once, so it is spread, the same
    /// notification always alike.
    func dueAt(_ notification: UUID, spread: Duration) -> Timestamp? {
        guard case .hold(let until) = answer else { return nil }
        guard reason == .quietHours else { return until }
        let share = Double(UInt16(notification.uuid.0) << 8 | UInt16(notification.uuid.1)) / 65_536
        return until + spread * share
    }
}
