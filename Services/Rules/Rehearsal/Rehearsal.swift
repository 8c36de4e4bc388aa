import FoundationEssentials
import PushProtocol

/// What rules would tell, and when: the same decisions as in service, without a database, a bus or a clock of its own.
struct Rehearsal {
    /// One decision about one person.
    struct Telling: Hashable, Sendable {
        var at: Timestamp
        var app: AppID
        /// The upstream's id of it.
        var event: String
        var rule: String
        var user: UserID
        var judgement: Judgement
        /// What would be pushed, to this person alone; `nil` when nothing is.
        var notification: Notification?

        var content: Content? { notification?.content }
    }

    /// An event that comes to nothing, and why.
    struct Refusal: Hashable, Sendable {
        var at: Timestamp
        var event: String
        var reason: String
    }

    let book: RuleBook
    var people: [PersonKey: Person] = [:]
    var members: [GroupKey: [UserID: Circle.Member]] = [:]
    private(set) var tellings: [Telling] = []
    private(set) var refusals: [Refusal] = []
    /// What nobody has read, by person.
    private var unread: [PersonKey: [RulingWrites.Kept]] = [:]
    private var waiting: [HeldItem] = []
    private var buckets: [BucketKey: DigestStore.Row] = [:]
    private var done: [ItemKey: Timestamp] = [:]

    init(_ book: RuleBook) { self.book = book }

    /// Something happens, after everything that is due before it.
    mutating func happen(_ event: DomainEvent, at now: Timestamp) {
        advance(to: now)
        switch book.decide(event, now: now) {
        case .unknownApp: refuse(event, now, "there is no rule file for \(event.app)")
        case .unknownType: refuse(event, now, "\(event.app) does not know the event \(event.type)")
        case .expired: refuse(event, now, "its expirytime has passed")
        case .unrenderable(let error): refuse(event, now, "\(error)")
        case .notify(let drafts, let signals, let ruleSet):
            let event = EventCase(event, ruleSet: ruleSet, arrivedAt: now, drafts: drafts, signals: signals)
            take(event, now)
            decide(event, now)
        }
    }

    /// Everything that is due up to a moment happens.
    mutating func advance(to moment: Timestamp) {
        while let next = nextDue, next <= moment {
            for index in waiting.indices.reversed() where waiting[index].dueAt.map({ $0 <= next }) ?? false {
                release(waiting.remove(at: index), next)
            }
            for (key, row) in buckets where row.closing.next.map({ $0 <= next }) ?? false {
                buckets[key] = nil
                close(row, next)
            }
        }
    }

    private var nextDue: Timestamp? {
        (waiting.compactMap(\.dueAt) + buckets.values.compactMap(\.closing.next)).min()
    }

    private mutating func refuse(_ event: DomainEvent, _ now: Timestamp, _ reason: String) {
        refusals.append(Refusal(at: now, event: event.id, reason: reason))
    }
}

extension Rehearsal {
    private mutating func take(_ event: EventCase, _ now: Timestamp) {
        let app = event.record.app
        for signal in event.signals {
            switch signal {
            case .present(let user, _, let viewing, let lease):
                people[PersonKey(app: app, user: user), default: Person()].leases = [
                    Person.Lease(viewing: viewing, expiresAt: now + lease)
                ]
            case .gone(let user, _): people[PersonKey(app: app, user: user)]?.leases = []
            case .read(let user, let thread):
                unread[PersonKey(app: app, user: user)]?.removeAll { thread == nil || $0.thread == thread }
            case .membership(let group, let users, let change):
                let key = GroupKey(app: app, group: group)
                if change == .members { members[key] = [:] }
                for (user, role) in users {
                    members[key, default: [:]][user] = change == .left ? nil : Circle.Member(user: user, role: role)
                }
            case .done(let item):
                let key = ItemKey(app: app, item: item)
                done[key] = event.record.occurredAt
                waiting.removeAll { $0.saying.app == app && $0.item == item }
                for bucket in buckets.keys where bucket.person.app == app {
                    buckets[bucket]?.bucket.items.removeAll { $0.name == item }
                }
            }
        }
    }

    private mutating func decide(_ event: EventCase, _ now: Timestamp) {
        var event = event
        event.statements = event.statements.flatMap { statement in
            let users = statement.circles.flatMap { circle in
                (members[GroupKey(app: event.record.app, group: circle.group)] ?? [:]).values.filter(circle.takes)
                    .map(\.user).sorted { $0.rawValue < $1.rawValue }
            }
            return (statement.circles.isEmpty ? statement : statement.joined(by: users)).voiced(people)
        }
        let ruled = event.judge(&people, ItemNews(done: done), now: now)
        var writes = RulingWrites(decidedAt: now)
        writes.add(event, ruled, people, spread: .zero)
        keep(writes, Dictionary(event.statements.map { ($0.saying.id, $0.saying) }) { first, _ in first }, now)
        var rest = ruled[...]
        for statement in event.statements {
            // An audience is ruled about as one, and so is whoever follows something.
            let badges = statement.isAnnounced ? [nil] : statement.recipients.map(\.badge)
            let broadcast = statement.broadcast == nil ? nil : statement.notifications([:], unread: [:]).first
            for (ruled, badge) in zip(rest.prefix(badges.count), badges) {
                tell(
                    ruled, statement.saying, badge: statement.countsUnread ? count(ruled.person) : badge, now,
                    asBroadcast: broadcast)
            }
            rest = rest.dropFirst(badges.count)
        }
    }

    private func count(_ person: PersonKey) -> Int { Content.badge(unread[person]?.count ?? 0) }

    private mutating func keep(_ writes: RulingWrites, _ sayings: [UUID: Saying], _ now: Timestamp) {
        for kept in writes.inbox { unread[kept.person, default: []].append(kept) }
        for held in writes.held {
            guard let saying = sayings[held.saying] else { continue }
            if let item = held.item {
                waiting.removeAll { $0.person == held.person && $0.saying.rule == held.rule && $0.item == item }
            }
            waiting.append(
                HeldItem(
                    saying: saying,
                    recipient: held.recipient, event: held.event, since: held.since ?? now,
                    quietHolds: held.isByQuietHours ? 1 : 0, step: 1,
                    kind: held.kind, item: held.item, saidAt: held.saidAt, isKept: held.isKept, entry: held.entry,
                    dueAt: held.dueAt))
        }
        for one in writes.gathered { gather(one, now) }
    }

    private mutating func gather(_ one: RulingWrites.Gathered, _ now: Timestamp) {
        let key = BucketKey(person: one.person, bucket: one.bucket)
        var row =
            buckets[key]
            ?? DigestStore.Row(key: key, rule: one.rule, bucket: Bucket(plannedAt: one.from, last: nil, items: []))
        row.bucket.items.removeAll { $0.name == one.item }
        row.bucket.items.append(
            Bucket.Item(
                name: one.item, notification: one.notification, event: one.event, correlation: one.correlation,
                values: one.values, saidAt: one.saidAt, from: one.from, end: one.end))
        let settings = people[one.person]?.settings ?? PersonalSettings()
        let planned = one.digest.closing(after: one.from, settings: settings, zone: one.zone, last: row.bucket.last).at
        if planned < row.closing.next ?? Timestamp(milliseconds: .max) {
            row.closing.next = planned
            row.bucket.plannedAt = one.from
        }
        let news = row.bucket.items.filter { !$0.isTold && $0.from <= now }.count
        if let count = one.digest.count, news >= count { row.closing.next = now }
        buckets[key] = row
    }

    private mutating func release(_ item: HeldItem, _ now: Timestamp) {
        var item = item
        guard let set = book.ruleSets[item.saying.app], let rule = set.rule(named: item.saying.rule) else { return }
        let judgement = Judge(house: set.house, now: now).judge(
            item.matter(rule), &people[item.person, default: Person()])
        let ruled = Ruled(
            notification: item.recipient.notification, step: item.step, event: item.event, rule: rule.name,
            person: item.person, judgement: judgement, ruleSet: set.version)
        let settings = people[item.person]?.settings ?? PersonalSettings()
        let isWanted = set.house.keeps(rule.policy, for: settings)
        if let kept = item.kept(judgement, isWanted: isWanted) {
            unread[item.person, default: []].append(kept)
            item.isKept = true
        }
        if let gathered = item.gathered(judgement, rule, set.house, now: now) { gather(gathered, now) }
        item.take(judgement, rule, spread: .zero)
        // What leaves has the badge of now, not that of when it was held.
        tell(ruled, item.saying, badge: rule.how.countsUnread ? count(item.person) : item.recipient.badge, now)
        if item.leaving == nil, !item.isOver { waiting.append(item) }
    }

    private mutating func close(_ row: DigestStore.Row, _ now: Timestamp) {
        var row = row
        var writes = RulingWrites(decidedAt: now)
        let settings = people[row.key.person]?.settings ?? PersonalSettings()
        do {
            try row.close(by: book, settings, &writes, now: now)
        } catch {
            refusals.append(Refusal(at: now, event: "-", reason: "\(error)"))
        }
        let gone = Set(row.closing.gone.map(\.name))
        let told = Set(row.closing.told.map(\.name))
        row.bucket.items.removeAll { gone.contains($0.name) }
        for index in row.bucket.items.indices where told.contains(row.bucket.items[index].name) {
            row.bucket.items[index].isTold = true
        }
        row.bucket.last = row.closing.last
        row.bucket.plannedAt = row.closing.plannedAt
        buckets[row.key] = row
        for held in writes.held {
            guard let saying = writes.sayings.first(where: { $0.id == held.saying }) else { continue }
            release(
                HeldItem(
                    saying: saying,
                    recipient: held.recipient, event: held.event, since: now, quietHolds: 0, step: 1, kind: held.kind,
                    isKept: held.isKept), now)
        }
    }

    /// - Parameter broadcast: what is told instead, if it is to whoever follows something.
    private mutating func tell(
        _ ruled: Ruled, _ saying: Saying, badge: Int?, _ now: Timestamp, asBroadcast broadcast: Notification? = nil
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
                judgement: ruled.judgement, notification: notification))
    }
}

extension RulingWrites.Held {
    fileprivate var recipient: Notification.Recipient {
        Notification.Recipient(user: person.user, notification: notification, badge: badge)
    }
}
