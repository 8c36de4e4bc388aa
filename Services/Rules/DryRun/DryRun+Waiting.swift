import FoundationEssentials
import PushProtocol

// Timed work: held notifications are decided again, digests close, badges are corrected.

extension DryRun {
    /// A held notification that was decided again.
    struct Release {
        var decided: DecisionRecord
        var item: HeldItem
        var countsUnread: Bool
        var isKept: Bool
    }

    /// Decides a held notification again.
    ///
    /// - Returns: `nil` if the rule is gone.
    mutating func release(_ item: HeldItem, _ now: Timestamp) -> Release? {
        var item = item
        guard let set = ruleSets.ruleSets[item.rendered.app], let rule = set.rule(named: item.rendered.rule) else {
            return nil
        }
        let decision = DecisionEngine(defaults: set.defaults, now: now).decide(
            item.input(rule), &people[item.person, default: Person()])
        let decided = DecisionRecord(
            notification: item.recipient.notification, step: item.step, event: item.event, rule: rule.name,
            person: item.person, decision: decision, ruleSet: set.version)
        let settings = people[item.person]?.settings ?? PersonalSettings()
        let kept = item.kept(decision, isWanted: set.defaults.keeps(rule.policy, for: settings))
        if let kept { unread[item.person, default: []].append(kept) }
        item.isKept = true
        if let gathered = item.gathered(decision, rule, set.defaults, now: now) { gather(gathered, now) }
        item.take(decision, rule, spread: spread)
        if item.leaving == nil, !item.isOver { waiting.append(item) }
        return Release(decided: decided, item: item, countsUnread: rule.how.countsUnread, isKept: kept != nil)
    }

    /// Records a release. The badge has the present count, not the count from when the notification was held.
    mutating func tell(_ release: Release, _ now: Timestamp) {
        let item = release.item
        tell(
            release.decided, item.rendered, badge: release.countsUnread ? count(item.person) : item.recipient.badge,
            isKept: release.isKept, now)
    }

    /// Puts an item into its bucket, and plans when the bucket closes.
    mutating func gather(_ one: DecisionWrites.Gathered, _ now: Timestamp) {
        let key = BucketKey(person: one.person, bucket: one.bucket)
        var row =
            buckets[key]
            ?? DigestStore.Row(key: key, rule: one.rule, bucket: Bucket(plannedAt: one.from, last: nil, items: []))
        let isOvertaken = row.bucket.items.contains { $0.name == one.item && $0.saidAt > one.saidAt }
        if !isOvertaken {
            row.bucket.items.removeAll { $0.name == one.item }
            row.bucket.items.append(
                Bucket.Item(
                    name: one.item, notification: one.notification, event: one.event, correlation: one.correlation,
                    values: one.values, saidAt: one.saidAt, from: one.from, end: one.end))
        }
        let settings = people[one.person]?.settings ?? PersonalSettings()
        let planned = one.digest.closing(after: one.from, settings: settings, zone: one.zone, last: row.bucket.last).at
        if planned < row.closing.next ?? Timestamp(milliseconds: .max) {
            row.closing.next = planned
            row.bucket.plannedAt = one.from
        }
        let news = row.bucket.items.filter { !$0.wasSent && $0.from <= now }.count
        if let count = one.digest.count, news >= count { row.closing.next = now }
        buckets[key] = row
    }

    /// Closes a bucket that is due. Its digest is decided like a held notification.
    mutating func close(_ row: DigestStore.Row, _ now: Timestamp) {
        var row = row
        row.bucket.items.sort { ($0.from, $0.saidAt, $0.name) < ($1.from, $1.saidAt, $1.name) }
        var writes = DecisionWrites(decidedAt: now)
        let settings = people[row.key.person]?.settings ?? PersonalSettings()
        do {
            try row.close(by: ruleSets, settings, &writes, now: now)
        } catch {
            refusals.append(Refusal(at: now, event: "-", reason: "\(error)"))
        }
        let events = Dictionary(row.bucket.items.map { ($0.notification, $0.correlation) }) { first, _ in first }
        for decided in writes.decisions {
            predictions.append(
                PredictedDecision(
                    at: now, app: decided.person.app, event: events[decided.notification] ?? "-", rule: decided.rule,
                    user: decided.person.user, decision: decided.decision))
        }
        let gone = Set(row.closing.gone.map(\.name))
        let told = Set(row.closing.told.map(\.name))
        row.bucket.items.removeAll { gone.contains($0.name) }
        for index in row.bucket.items.indices where told.contains(row.bucket.items[index].name) {
            row.bucket.items[index].wasSent = true
        }
        row.bucket.last = row.closing.last
        row.bucket.plannedAt = row.closing.plannedAt
        buckets[row.key] = row
        for held in writes.held {
            guard let rendered = writes.renderedNotifications.first(where: { $0.id == held.rendered }) else { continue }
            waiting.append(HeldItem(held, rendered, now))
        }
    }

    /// Corrects the badge on all devices of a user after a read.
    mutating func correct(_ person: PersonKey, _ now: Timestamp) {
        let use = ruleSets.ruleSets[person.app]?.badgeUse ?? .none
        guard let badge = use.correction(unread: unread[person]?.count ?? 0).map(Content.badge) else { return }
        let id = DerivedID.uuid5(
            DerivedID.namespace, ["badge", person.app.rawValue, person.user.rawValue, "\(now.milliseconds)"])
        let notification = BadgeCorrector.notification(
            to: [Notification.Recipient(user: person.user, notification: id, badge: badge)], of: person.app, now: now)
        predictions.append(
            PredictedDecision(
                at: now, app: person.app, event: "-", rule: BadgeCorrector.rule, user: person.user,
                decision: RuleDecision(answer: .push, reason: .notUserVisible), notification: notification))
    }
}
