import FoundationEssentials
import PushProtocol

extension Rehearsal {
    /// Decides about every recipient of an event.
    mutating func decide(_ event: EventCase, _ now: Timestamp) {
        var event = event
        event.statements = event.statements.map { statement in
            guard !statement.circles.isEmpty else { return statement }
            let users = statement.circles.flatMap { circle in
                (groups[GroupKey(app: event.record.app, group: circle.group)]?.members ?? []).filter(circle.takes)
                    .map(\.user)
            }
            return statement.joined(by: users)
        }
        let news = news(of: event, now)
        event.statements = event.statements.flatMap { $0.voiced(people) }
        let ruled = event.judge(&people, news, now: now)
        var writes = RulingWrites(decidedAt: now)
        writes.add(event, ruled, people, spread: spread)
        keep(writes, Dictionary(event.statements.map { ($0.saying.id, $0.saying) }) { first, _ in first }, now)
        let kept = Set(writes.inbox.map(\.notification))
        var rest = ruled[...]
        for statement in event.statements {
            // One decision stands for an audience, and for all who follow something.
            let badges = statement.isAnnounced ? [nil] : statement.recipients.map(\.badge)
            let broadcast = statement.broadcast == nil ? nil : statement.notifications([:], unread: [:]).first
            for (ruled, badge) in zip(rest.prefix(badges.count), badges) {
                tell(
                    ruled, statement.saying, badge: statement.countsUnread ? count(ruled.person) : badge,
                    isKept: kept.contains(ruled.notification), now, asBroadcast: broadcast)
            }
            rest = rest.dropFirst(badges.count)
        }
    }

    /// The badge of a person whose icon counts unread entries.
    func count(_ person: PersonKey) -> Int { Content.badge(unread[person]?.count ?? 0) }

    private mutating func keep(_ writes: RulingWrites, _ sayings: [UUID: Saying], _ now: Timestamp) {
        for kept in writes.inbox { unread[kept.person, default: []].append(kept) }
        for held in writes.held {
            guard let saying = sayings[held.saying] else { continue }
            waiting.append(HeldItem(held, saying, now))
        }
        for one in writes.gathered { gather(one, now) }
    }

    /// - Parameter broadcast: the message to all who follow something, where the decision is about them.
    mutating func tell(
        _ ruled: Ruled, _ saying: Saying, badge: Int?, isKept: Bool, _ now: Timestamp,
        asBroadcast broadcast: Notification? = nil
    ) {
        let recipient = Notification.Recipient(
            user: ruled.person.user, notification: ruled.notification, badge: badge)
        func pushed(quietly: Bool) -> Notification? {
            saying.notifications(to: [recipient], quietly: quietly) { _, _ in ruled.notification }.first
        }
        let notification: Notification? =
            switch ruled.judgement.answer {
            case .push: broadcast ?? pushed(quietly: false)
            case .pushQuietly: pushed(quietly: true)
            case .hold, .digest, .inbox, .drop: nil
            }
        tellings.append(
            Telling(
                at: now, app: ruled.person.app, event: saying.correlation, rule: ruled.rule, user: ruled.person.user,
                judgement: ruled.judgement, notification: notification, kept: isKept ? saying.content : nil))
    }
}

extension HeldItem {
    init(_ held: RulingWrites.Held, _ saying: Saying, _ now: Timestamp) {
        self.init(
            saying: saying,
            recipient: Notification.Recipient(
                user: held.person.user, notification: held.notification, badge: held.badge),
            event: held.event, since: held.since ?? now, quietHolds: held.isByQuietHours ? 1 : 0, step: 1,
            kind: held.kind, item: held.item, saidAt: held.saidAt, isKept: held.isKept, entry: held.entry,
            dueAt: held.dueAt)
    }
}
