import FoundationEssentials
import PushProtocol
import RuleEngine
import RuleLanguage

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
        guard let found = ruleSets.rule(of: item.rendered) else { return nil }
        var item = item
        var writes = DecisionWrites(decidedAt: now)
        item.release(by: found, &people, &writes, spread: spread)
        keep(writes, now)
        if item.leaving == nil, !item.isOver { waiting.append(item) }
        return Release(
            decided: writes.decisions[0], item: item, countsUnread: found.rule.how.countsUnread,
            isKept: !writes.inbox.isEmpty)
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
        let item = one.item
        var row =
            buckets[one.key]
            ?? DueBucket(key: one.key, rule: one.rule, bucket: Bucket(plannedAt: item.from, items: []))
        let isOvertaken = row.bucket.items.contains { $0.name == item.name && $0.saidAt > item.saidAt }
        if !isOvertaken {
            row.bucket.items.removeAll { $0.name == item.name }
            row.bucket.items.append(item)
        }
        let settings = people[one.key.person]?.settings ?? PersonalSettings()
        let planned = one.digest.closing(
            after: item.from, settings: settings, zone: one.zone, last: row.bucket.last
        ).at
        if planned < row.closing.next ?? Timestamp(milliseconds: .max) {
            row.closing.next = planned
            row.bucket.plannedAt = item.from
        }
        let news = row.bucket.items.filter { !$0.wasSent && $0.from <= now }.count
        if let count = one.digest.count, news >= count { row.closing.next = now }
        buckets[one.key] = row
    }

    /// Closes a bucket that is due. Its digest is decided like a held notification.
    mutating func close(_ row: DueBucket, _ now: Timestamp) {
        var row = row
        row.bucket.items.sort { ($0.from, $0.saidAt, $0.name) < ($1.from, $1.saidAt, $1.name) }
        var writes = DecisionWrites(decidedAt: now)
        let settings = people[row.key.person]?.settings ?? PersonalSettings()
        do {
            try row.close(by: ruleSets, settings, &writes, now: now)
        } catch {
            refusals.append(RefusedEvent(at: now, event: "-", reason: "\(error)"))
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
        keep(writes, now)
    }

    /// Corrects the badge on all devices of a user after a read.
    mutating func correct(_ person: PersonKey, _ now: Timestamp) {
        let use = ruleSets.ruleSets[person.app]?.badgeUse ?? .none
        guard let badge = use.correction(unread: unread[person]?.count ?? 0).map(Content.badge) else { return }
        let id = DerivedID.uuid5(
            DerivedID.namespace, ["badge", person.app.rawValue, person.user.rawValue, "\(now.milliseconds)"])
        let notification = BadgeCorrection.notification(
            to: [Notification.Recipient(user: person.user, notification: id, badge: badge)], of: person.app, now: now)
        predictions.append(
            PredictedDecision(
                at: now, app: person.app, event: "-", rule: BadgeCorrection.rule, user: person.user,
                decision: RuleDecision(answer: .push, reason: .notUserVisible), notification: notification))
    }
}
