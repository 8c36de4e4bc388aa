import FoundationEssentials
import PushProtocol

/// What something is about, in an app.
struct ItemKey: Hashable, Comparable, Sendable {
    var app: AppID
    var item: String

    static func < (a: ItemKey, b: ItemKey) -> Bool { (a.app.rawValue, a.item) < (b.app.rawValue, b.item) }
}

/// What is known of items when events about them are decided.
struct ItemNews: Sendable {
    /// Since when nothing of before need be told.
    var done: [ItemKey: Timestamp] = [:]
    /// What waits already.
    var waiting: [Slot: Timestamp] = [:]

    /// What one rule has to say to one person about one item: there is room for one.
    struct Slot: Hashable, Sendable {
        var item: ItemKey
        var rule: String
        var user: UserID
    }
}

extension EventCase {
    /// People whose rows the decision may change: only they need to be locked.
    var charged: [PersonKey] {
        statements.filter { statement in
            statement.isNoise
                && (statement.policy.isCapped || house.isCritical(statement.policy) || statement.terms.dedupe != nil)
        }.flatMap(people)
    }

    /// People who are asked at all.
    var asked: [PersonKey] { statements.filter { $0.isNoise || $0.voices != nil }.flatMap(people) }

    /// People of whom it matters where they are looking.
    var watched: [PersonKey] {
        statements.filter { $0.isNoise && $0.policy.presence != .ignored }.flatMap(people)
    }

    /// People whose badge says how much they have not read.
    var counted: [PersonKey] { statements.filter(\.countsUnread).flatMap(people) }

    /// What its statements are about.
    var items: [ItemKey] { statements.compactMap(\.item) }

    private func people(_ statement: Statement) -> [PersonKey] {
        statement.recipients.map { PersonKey(app: statement.saying.app, user: $0.user) }
    }

    /// Judges everything that is said, in the order of the rules, and charges the people.
    func judge(_ people: inout [PersonKey: Person], _ news: ItemNews, now: Timestamp) -> [Ruled] {
        let judge = Judge(house: house, now: now)
        return statements.flatMap { statement in
            if let ruled = statement.announcement(record) { return [ruled] }
            let matter = statement.matter(now: now)
            return statement.recipients.map { recipient in
                let key = PersonKey(app: statement.saying.app, user: recipient.user)
                let judgement =
                    statement.waits(for: key, people, news, judge, occurredAt: record.occurredAt)
                    ?? judge.judge(matter, &people[key, default: Person()])
                return Ruled(
                    notification: recipient.notification, step: 0, event: record.key, rule: statement.saying.rule,
                    person: key, judgement: judgement, ruleSet: record.ruleSet)
            }
        }
    }
}

extension EventCase.Statement {
    var item: ItemKey? { terms.item.map { ItemKey(app: saying.app, item: $0) } }

    /// When it is to be said to a person, if that is for the event to say.
    func due(for person: Person, _ house: HouseRules) -> Timestamp? {
        terms.plan?.dueAt(in: person.settings.zone ?? house.zone)
    }

    /// When it is too late to say it to a person.
    func end(for person: Person, _ house: HouseRules) -> Timestamp? {
        [terms.plan?.endsAt(in: person.settings.zone ?? house.zone), saying.expiresAt].compactMap(\.self).min()
    }

    /// What is told to an audience, or to all who follow something, asks nobody: one decision stands for all.
    fileprivate func announcement(_ record: EventRecord) -> Ruled? {
        let told: (id: UUID, spoken: String, reason: Judgement.Cause)? =
            audience.map { ($0.campaign, $0.members.spoken, .audience) }
            ?? broadcast.map { ($0.notification, $0.destination.spoken, .broadcast) }
        // No user has this id: it is for whoever reads the decision.
        guard let told, let name = UserID(rawValue: told.spoken.excerpt(200)) else { return nil }
        return Ruled(
            notification: told.id, step: 0, event: record.key, rule: saying.rule,
            person: PersonKey(app: saying.app, user: name), judgement: Judgement(answer: .push, reason: told.reason),
            ruleSet: record.ruleSet)
    }

    /// What the event's own times and what is known of its item make of it, before the person is asked.
    fileprivate func waits(
        for key: PersonKey, _ people: [PersonKey: Person], _ news: ItemNews, _ judge: Judge, occurredAt: Timestamp
    ) -> Judgement? {
        if let item {
            if let done = news.done[item], done >= occurredAt { return Judgement(answer: .drop, reason: .done) }
            let slot = ItemNews.Slot(item: item, rule: saying.rule, user: key.user)
            if let other = news.waiting[slot], other > occurredAt { return Judgement(answer: .drop, reason: .replaced) }
        }
        guard terms.plan != nil else { return nil }
        let person = people[key] ?? Person()
        guard let due = due(for: person, judge.house) else { return nil }
        if let end = end(for: person, judge.house), end <= judge.now {
            return Judgement(answer: .drop, reason: .tooLate)
        }
        guard due > judge.now else { return nil }
        return policy.sumsUpAll
            ? Judgement(answer: .digest, reason: .gathered) : Judgement(answer: .hold(until: due), reason: .scheduled)
    }

    fileprivate func matter(now: Timestamp) -> Matter {
        Matter(
            policy: policy, isNoise: isNoise, mutes: saying.mutes, thread: saying.content.thread,
            expiresAt: saying.expiresAt, since: now, dedupe: terms.dedupe, isSendable: saying.isSendable)
    }
}

extension Audience.Members {
    /// As a decision names it.
    var spoken: String {
        switch self {
        case .everyone: "(everyone)"
        case .group(.topic(let name)): "(topic \(name.rawValue))"
        case .group(.tag(let name)): "(tag \(name.rawValue))"
        case .users: "(a list of users)"
        }
    }
}

extension Rule.Policy {
    var isCapped: Bool { !caps.isEmpty }
}

extension HouseRules {
    func isCritical(_ policy: Rule.Policy) -> Bool { policy.type.flatMap { types[$0]?.isCritical } ?? false }
}
