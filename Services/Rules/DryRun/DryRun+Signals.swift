import PushProtocol
import RuleEngine
import RuleLanguage

extension DryRun {
    /// Applies the signals of an event before its decisions.
    mutating func take(_ event: EventCase, _ now: Timestamp) {
        let app = event.record.app
        for signal in event.signals {
            switch signal {
            case .present(let user, let device, let viewing, let lease):
                let person = PersonKey(app: app, user: user)
                leases[person, default: [:]][device] = Person.Lease(viewing: viewing, expiresAt: now + lease)
                people[person, default: Person()].leases = leases[person].map { Array($0.values) } ?? []
            case .gone(let user, let device):
                let person = PersonKey(app: app, user: user)
                leases[person]?[device] = nil
                people[person]?.leases = leases[person].map { Array($0.values) } ?? []
            case .read(let user, let thread):
                keepUnread(PersonKey(app: app, user: user), now) { thread != nil && $0.thread != thread }
            case .membership(let group, let users, let change):
                groups[GroupKey(app: app, group: group), default: DryRunGroup()]
                    .take(users, change, at: event.record.occurredAt)
            case .done(let item):
                let key = ItemKey(app: app, item: item)
                done[key] = max(done[key] ?? event.record.occurredAt, event.record.occurredAt)
                takeBack(key, of: nil, until: event.record.occurredAt, .done, now)
            case .revoke(let item, let user, let keepsInbox, _):
                let key = ItemKey(app: app, item: item)
                revoked.revoke(key, user, until: event.record.occurredAt)
                takeBack(key, of: user, until: event.record.occurredAt, .revoked, now)
                if !keepsInbox { clearInbox(key, of: user, until: event.record.occurredAt, now) }
            }
        }
    }

    /// Keeps those of a user's unread items for which `isLeft` holds. A changed unread count corrects the badge.
    mutating func keepUnread(_ person: PersonKey, _ now: Timestamp, where isLeft: (DecisionWrites.Kept) -> Bool) {
        let before = unread[person, default: []]
        let rest = before.filter(isLeft)
        guard rest.count < before.count else { return }
        unread[person] = rest
        badges[person] = min(badges[person] ?? now + BadgeCorrection.pause, now + BadgeCorrection.pause)
    }

    /// Drops held and gathered notifications about an item whose events happened up to `moment`.
    ///
    /// - Parameter user: only those of this user; `nil`: of all users.
    mutating func takeBack(
        _ key: ItemKey, of user: UserID?, until moment: Timestamp, _ reason: RuleDecision.Cause, _ now: Timestamp
    ) {
        func isGone(_ item: HeldItem) -> Bool {
            item.isAbout(key) && item.wasSaid(by: moment) && (user == nil || item.recipient.user == user)
        }
        let gone = waiting.filter(isGone)
        waiting.removeAll(where: isGone)
        for item in gone { tell(item, reason, now) }
        for (bucket, row) in buckets.sorted(by: { $0.key < $1.key })
        where bucket.person.app == key.app && (user == nil || bucket.person.user == user) {
            let gone = row.bucket.items.filter { $0.name == key.item && $0.saidAt <= moment }
            buckets[bucket]?.bucket.items.removeAll { $0.name == key.item && $0.saidAt <= moment }
            for item in gone where !item.wasSent {
                predictions.append(
                    PredictedDecision(
                        at: now, app: key.app, event: item.correlation, rule: row.rule, user: bucket.person.user,
                        decision: RuleDecision(answer: .drop, reason: reason)))
            }
        }
    }

    /// Removes the unread inbox items about an item, and corrects the badges.
    private mutating func clearInbox(
        _ key: ItemKey, of user: UserID?, until moment: Timestamp, _ now: Timestamp
    ) {
        let about = about
        for person in unread.keys where person.app == key.app && (user == nil || person.user == user) {
            keepUnread(person, now) { kept in
                guard let (item, saidAt) = about[kept.notification] else { return true }
                return item != key || saidAt > moment
            }
        }
    }

    /// Reads the state of the items of an event. An older notification about one of them is replaced.
    mutating func news(of event: EventCase, _ now: Timestamp) -> ItemState {
        var news = ItemState(done: done, revoked: revoked)
        news.doneByUser = doneByUser
        var slots: Set<ItemState.Slot> = []
        for draft in event.drafts where draft.replacement == nil {
            guard let item = draft.item else { continue }
            for recipient in draft.recipients {
                slots.insert(ItemState.Slot(item: item, rule: draft.rendered.rule, user: recipient.user))
            }
        }
        var gone: [HeldItem] = []
        waiting.removeAll { held in
            guard let slot = held.slot, slots.contains(slot), let saidAt = held.saidAt else { return false }
            guard saidAt <= event.record.occurredAt else {
                news.waiting[slot] = saidAt
                return false
            }
            gone.append(held)
            return true
        }
        for item in gone { tell(item, .replaced, now) }
        return news
    }

    private mutating func tell(_ item: HeldItem, _ reason: RuleDecision.Cause, _ now: Timestamp) {
        predictions.append(
            PredictedDecision(
                at: now, app: item.rendered.app, event: item.rendered.correlation, rule: item.rendered.rule,
                user: item.recipient.user, decision: RuleDecision(answer: .drop, reason: reason)))
    }
}

extension HeldItem {
    fileprivate var slot: ItemState.Slot? {
        item.map {
            ItemState.Slot(item: ItemKey(app: rendered.app, item: $0), rule: rendered.rule, user: recipient.user)
        }
    }

    fileprivate func isAbout(_ key: ItemKey) -> Bool { rendered.app == key.app && item == key.item }

    fileprivate func wasSaid(by moment: Timestamp) -> Bool { saidAt.map { $0 <= moment } ?? false }
}
