package import PushProtocol
package import RuleLanguage
import FoundationEssentials

/// An item of an app: the subject of notifications.
package struct ItemKey: Hashable, Comparable, Sendable {
    package var app: AppID
    package var item: String

    package init(
        app: AppID, item: String
    ) {
        self.app = app
        self.item = item
    }

    package static func < (a: ItemKey, b: ItemKey) -> Bool { (a.app.rawValue, a.item) < (b.app.rawValue, b.item) }
}

/// The stored state of items when events about them are decided.
package struct ItemState: Sendable {
    /// Events up to this time about the item are obsolete.
    package var done: [ItemKey: Timestamp] = [:]
    /// The same for one user, whose receipt completed the item.
    package var doneByUser: [UserItem: Timestamp] = [:]
    /// The event time of each waiting notification.
    package var waiting: [Slot: Timestamp] = [:]
    /// The due time of each notification that was due, was not sent yet, and is replaced by the event.
    package var overdue: [Slot: Timestamp] = [:]
    package var revoked = RevocationState()

    package init(
        done: [ItemKey: Timestamp] = [:], waiting: [Slot: Timestamp] = [:],
        revoked: RevocationState = RevocationState()
    ) {
        self.done = done
        self.waiting = waiting
        self.revoked = revoked
    }

    package struct UserItem: Hashable, Sendable {
        package var item: ItemKey
        package var user: UserID

        package init(item: ItemKey, user: UserID) {
            self.item = item
            self.user = user
        }
    }

    /// Whether an event of this time about the item is obsolete for the user.
    func isDone(_ item: ItemKey, for user: UserID, occurredAt: Timestamp) -> Bool {
        let moments = [done[item], doneByUser[UserItem(item: item, user: user)]].compactMap(\.self)
        return moments.contains { $0 >= occurredAt }
    }

    /// An item, rule and user. At most one notification can wait for each.
    package struct Slot: Hashable, Sendable {
        package var item: ItemKey
        package var rule: String
        package var user: UserID

        package init(
            item: ItemKey, rule: String, user: UserID
        ) {
            self.item = item
            self.rule = rule
            self.user = user
        }
    }
}

extension EventCase {
    /// Users whose caps or dedupe keys the decision can change. It locks only their rows.
    package var peopleWithCaps: [PersonKey] {
        drafts.filter { draft in
            draft.isUserVisible
                && (draft.policy.isCapped || defaults.isCritical(draft.policy) || draft.terms.dedupe != nil)
        }.flatMap(people)
    }

    /// Users whose settings the decision needs.
    package var peopleWithSettings: [PersonKey] {
        drafts.filter { $0.isUserVisible || $0.localizer != nil }.flatMap(people)
    }

    /// Users whose presence the decision needs.
    package var peopleWithPresence: [PersonKey] {
        drafts.filter { $0.isUserVisible && $0.policy.presence != .ignored }.flatMap(people)
    }

    /// Users whose badge is their number of unread inbox items.
    package var peopleWithUnreadBadge: [PersonKey] { drafts.filter(\.countsUnread).flatMap(people) }

    /// The items of the notifications.
    package var items: [ItemKey] { drafts.compactMap(\.item) }

    private func people(_ draft: NotificationDraft) -> [PersonKey] {
        draft.recipients.map { PersonKey(app: draft.rendered.app, user: $0.user) }
    }

    /// Decides all notifications in the order of the rules, and updates the users' cap histories and dedupe keys.
    package func decisions(_ people: inout [PersonKey: Person], _ itemState: ItemState, now: Timestamp)
        -> [DecisionRecord]
    {
        let engine = DecisionEngine(defaults: defaults, now: now)
        return drafts.flatMap { draft in
            let isRevoked = itemState.revoked.covers(record.key, draft.item, nil, occurredAt: record.occurredAt)
            if let decided = draft.announcement(record, isRevoked: isRevoked) { return [decided] }
            let input = draft.input(now: now)
            return draft.recipients.map { recipient in
                let key = PersonKey(app: draft.rendered.app, user: recipient.user)
                let decision =
                    draft.earlyDecision(for: key, people, itemState, engine, record)
                    ?? draft.heldOutDecision(for: key, people, engine, input)
                    ?? engine.decide(input, &people[key, default: Person()])
                return DecisionRecord(
                    notification: recipient.notification, step: 0, event: record.key, rule: draft.rendered.rule,
                    person: key, decision: decision, ruleSet: record.ruleSet)
            }
        }
    }
}

extension NotificationDraft {
    package var item: ItemKey? { terms.item.map { ItemKey(app: rendered.app, item: $0) } }

    /// Returns the scheduled time for a user; `nil` if the notification has no schedule.
    package func due(for person: Person, _ defaults: AppDefaults) -> Timestamp? {
        terms.plan?.dueAt(in: person.settings.zone ?? defaults.zone)
    }

    /// Returns the time after which a user no longer gets the notification; `nil` if there is none.
    package func end(for person: Person, _ defaults: AppDefaults) -> Timestamp? {
        [terms.plan?.endsAt(in: person.settings.zone ?? defaults.zone), rendered.expiresAt].compactMap(\.self).min()
    }

    /// Returns the one decision on an audience or a broadcast; `nil` for other notifications.
    ///
    /// Users' settings do not apply, because rules do not know the users.
    fileprivate func announcement(_ record: EventRecord, isRevoked: Bool) -> DecisionRecord? {
        let announced: (id: UUID, decisionLabel: String, reason: RuleDecision.Cause)? =
            audience.map { ($0.campaign, $0.members.decisionLabel, .audience) }
            ?? segment.map { ($0.audience.campaign, $0.decisionLabel, .segment) }
            ?? (isOfNobody
                ? (DerivedID.uuid5(record.key, ["nobody", rendered.rule]), Segment.nobody, causeOfNobody) : nil)
            ?? broadcast.map { ($0.notification, $0.destination.decisionLabel, .broadcast) }
        // A label for operators. No user has this id.
        guard let announced, let name = UserID(rawValue: announced.decisionLabel.excerpt(200)) else { return nil }
        return DecisionRecord(
            notification: announced.id, step: 0, event: record.key, rule: rendered.rule,
            person: PersonKey(app: rendered.app, user: name),
            decision: isRevoked
                ? RuleDecision(answer: .drop, reason: .revoked)
                : RuleDecision(answer: isOfNobody ? .drop : .push, reason: announced.reason),
            ruleSet: record.ruleSet)
    }

    private var causeOfNobody: RuleDecision.Cause {
        replacement.map { $0.isTooLarge ? .tooMany : .nothingToReplace } ?? .nobody
    }

    /// Decides by revocations, the item's state and the schedule, before the user's settings; `nil` if none applies.
    fileprivate func earlyDecision(
        for key: PersonKey, _ people: [PersonKey: Person], _ itemState: ItemState, _ engine: DecisionEngine,
        _ record: EventRecord
    ) -> RuleDecision? {
        let occurredAt = record.occurredAt
        if itemState.revoked.covers(record.key, item, key.user, occurredAt: occurredAt) {
            return RuleDecision(answer: .drop, reason: .revoked)
        }
        if let item {
            if itemState.isDone(item, for: key.user, occurredAt: occurredAt) {
                return RuleDecision(answer: .drop, reason: .done)
            }
            if let decision = replacementDecision(people[key] ?? Person(), engine) { return decision }
            let slot = ItemState.Slot(item: item, rule: rendered.rule, user: key.user)
            if let other = itemState.waiting[slot], other > occurredAt {
                return RuleDecision(answer: .drop, reason: .replaced)
            }
        }
        guard let plan = terms.plan, !holdsOut(key.user, engine.defaults) else { return nil }
        if let every = plan.every {
            // A replaced state that was due gives up its place: on a busy service, each state would else wait for the
            // next step, be replaced before it, and none would be sent.
            let place = item.flatMap { item in
                itemState.overdue[ItemState.Slot(item: item, rule: rendered.rule, user: key.user)]
            }
            return RuleDecision(answer: .hold(until: place ?? engine.now.next(every)), reason: .scheduled)
        }
        let person = people[key] ?? Person()
        guard let due = due(for: person, engine.defaults) else { return nil }
        if let end = end(for: person, engine.defaults), end <= engine.now {
            return RuleDecision(answer: .drop, reason: .tooLate)
        }
        guard due > engine.now else { return nil }
        return policy.digestsAll
            ? RuleDecision(answer: .digest, reason: .gathered)
            : RuleDecision(answer: .hold(until: due), reason: .scheduled)
    }

    /// The decision about a user of a hold-out; `nil` for other users. Nothing is sent or charged. A user whose settings
    /// refuse the notification has that reason, so that the others can be compared with those who got it.
    fileprivate func heldOutDecision(
        for key: PersonKey, _ people: [PersonKey: Person], _ engine: DecisionEngine, _ input: DecisionInput
    ) -> RuleDecision? {
        guard holdsOut(key.user, engine.defaults) else { return nil }
        var person = people[key] ?? Person()
        let decision = engine.decide(input, &person)
        return switch decision.answer {
        case .push, .pushQuietly, .hold, .digest: RuleDecision(answer: .drop, reason: .holdOut)
        case .inbox, .drop: RuleDecision(answer: .drop, reason: decision.reason)
        }
    }

    fileprivate func input(now: Timestamp) -> DecisionInput {
        DecisionInput(
            policy: policy, isUserVisible: isUserVisible, mutes: rendered.mutes, thread: rendered.content.thread,
            expiresAt: rendered.expiresAt, since: now, dedupe: terms.dedupe, isSendable: rendered.isSendable)
    }
}

extension Segment {
    /// The label in stored decisions.
    package var decisionLabel: String { "(segment of \(audience.members.decisionLabel.dropFirst())" }
    /// The label of the decision that no user matches.
    static let nobody = "(nobody)"
}

extension Audience.Members {
    /// The label in stored decisions.
    package var decisionLabel: String {
        switch self {
        case .everyone: "(everyone)"
        case .group(.topic(let name)): "(topic \(name.rawValue))"
        case .group(.tag(let name)): "(tag \(name.rawValue))"
        case .users: "(a list of users)"
        }
    }
}
