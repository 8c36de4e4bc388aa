import FoundationEssentials
import PushProtocol
import RuleEngine
import RuleLanguage

/// A notification that a later event under `replace` may replace.
struct DryRunOriginal {
    var notification: UUID
    var event: UUID
    var saidAt: Timestamp

    /// An item, and the rule of its notifications.
    struct Subject: Hashable {
        var item: ItemKey
        var rule: String
    }
}

// A dry run answers pushes at once, so every push that is replaced has an outcome, and a replacement is quiet.

extension DryRun {
    /// Gives a draft of `replace` its recipients.
    mutating func replacing(_ draft: NotificationDraft, _ record: EventRecord, _ now: Timestamp) -> [NotificationDraft]
    {
        guard let replacement = draft.replacement, let item = draft.item else { return [draft] }
        let rule = draft.rendered.rule
        let subject = DryRunOriginal.Subject(item: item, rule: rule)
        let last = lastReplacement[subject]
        lastReplacement[subject] = max(last ?? record.occurredAt, record.occurredAt)
        let slots = originals.filter { $0.key.item == item && $0.key.rule == rule }
        let found = slots.compactMap { slot, notes -> ReplacedNotification? in
            guard let note = notes.filter({ $0.saidAt <= record.occurredAt }).max(by: { $0.saidAt < $1.saidAt })
            else { return nil }
            return state(of: note, slot, replacement, isOvertaken: last.map { $0 > record.occurredAt } ?? false)
        }
        return draft.replacing(
            found.sorted { $0.user.rawValue < $1.user.rawValue },
            isTooLarge: found.count > Replacement.maximumNotifications)
    }

    private func state(
        of note: DryRunOriginal, _ slot: ItemState.Slot, _ replacement: Replacement, isOvertaken: Bool
    ) -> ReplacedNotification? {
        let person = PersonKey(app: slot.item.app, user: slot.user)
        guard let last = predictions.last(where: { $0.id == note.notification }) else { return nil }
        let held = waiting.first { $0.recipient.notification == note.notification }
        let isGathered = buckets.values.contains { row in
            row.bucket.items.contains { $0.notification == note.notification && !$0.wasSent }
        }
        let isUnread = unread[person, default: []].contains { $0.notification == note.notification }
        let wasKept = predictions.contains { $0.id == note.notification && $0.kept != nil }
        let isPushed = last.notification != nil
        return ReplacedNotification(
            user: slot.user, notification: note.notification,
            state: held != nil || isGathered ? .waiting : isPushed ? .pushed : wasKept ? .kept : .gone,
            isAnswered: true, isInInbox: wasKept, isRead: wasKept && !isUnread,
            isRevoked: revoked.covers(note.event, slot.item, slot.user, occurredAt: note.saidAt),
            isOvertaken: isOvertaken,
            expiresAt: last.notification?.expiresAt ?? replacement.lifetime.map { last.at + $0 }, decidedAt: last.at,
            rendered: held?.rendered.id)
    }

    /// Changes the texts of held notifications and of entries of digests.
    mutating func replace(_ words: [DecisionWrites.ReplacedWords]) {
        for one in words where one.original.state == .waiting {
            let id = one.original.notification
            for index in waiting.indices where waiting[index].recipient.notification == id {
                waiting[index].rendered.content = one.rendered.content
                waiting[index].rendered.preview = one.rendered.preview
                waiting[index].entry = one.entry ?? waiting[index].entry
            }
            guard let entry = one.entry else { continue }
            for key in buckets.keys {
                for index in buckets[key]?.bucket.items.indices ?? 0..<0
                where buckets[key]?.bucket.items[index].notification == id {
                    buckets[key]?.bucket.items[index].values = entry.values
                }
            }
        }
    }

    /// Notes the notifications of an event, so that a later event can replace them.
    mutating func noteOriginals(_ draft: NotificationDraft, _ record: EventRecord) {
        guard draft.replacement == nil, !draft.hasUnknownRecipients, let item = draft.item,
            ruleSets[record.app]?.replacements.isEmpty == false
        else { return }
        for recipient in draft.recipients {
            let slot = ItemState.Slot(item: item, rule: draft.rendered.rule, user: recipient.user)
            originals[slot, default: []].append(
                DryRunOriginal(
                    notification: recipient.notification, event: record.key, saidAt: record.occurredAt))
        }
    }
}
