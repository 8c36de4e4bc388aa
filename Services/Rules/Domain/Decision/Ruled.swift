import FoundationEssentials
import PushProtocol

/// A user of an app.
struct PersonKey: Hashable, Comparable, Sendable {
    var app: AppID
    var user: UserID

    static func < (a: PersonKey, b: PersonKey) -> Bool {
        (a.app.rawValue, a.user.rawValue) < (b.app.rawValue, b.user.rawValue)
    }
}

/// One decision, as it is kept.
struct Ruled: Hashable, Sendable {
    var notification: UUID
    /// From 0; what is held is decided about again under the next number.
    var step: Int
    var event: UUID
    var rule: String
    var person: PersonKey
    var judgement: Judgement
    /// The version of the rules that decided; `nil` when the app has none any more.
    var ruleSet: UUID?
}

extension EventCase {
    /// People whose rows the decision may change: only they need to be locked.
    var charged: [PersonKey] {
        statements.filter { $0.isNoise && ($0.policy.isCapped || house.isCritical($0.policy)) }.flatMap(people)
    }

    /// People who are asked at all.
    var asked: [PersonKey] { statements.filter(\.isNoise).flatMap(people) }

    /// People of whom it matters where they are looking.
    var watched: [PersonKey] {
        statements.filter { $0.isNoise && $0.policy.presence != .ignored }.flatMap(people)
    }

    /// People whose badge says how much they have not read.
    var counted: [PersonKey] { statements.filter(\.countsUnread).flatMap(people) }

    private func people(_ statement: Statement) -> [PersonKey] {
        statement.recipients.map { PersonKey(app: statement.saying.app, user: $0.user) }
    }

    /// Judges everything that is said, in the order of the rules, and charges the people.
    func judge(_ people: inout [PersonKey: Person], now: Timestamp) -> [Ruled] {
        let judge = Judge(house: house, now: now)
        return statements.flatMap { statement in
            let matter = statement.matter(now: now)
            return statement.recipients.map { recipient in
                let key = PersonKey(app: statement.saying.app, user: recipient.user)
                return Ruled(
                    notification: recipient.notification, step: 0, event: record.key, rule: statement.saying.rule,
                    person: key, judgement: judge.judge(matter, &people[key, default: Person()]),
                    ruleSet: record.ruleSet)
            }
        }
    }
}

extension EventCase.Statement {
    fileprivate func matter(now: Timestamp) -> Matter {
        Matter(
            policy: policy, isNoise: isNoise, mutes: saying.mutes, thread: saying.content.thread,
            expiresAt: saying.expiresAt, since: now)
    }
}

extension Rule.Policy {
    var isCapped: Bool { !caps.isEmpty }
}

extension HouseRules {
    func isCritical(_ policy: Rule.Policy) -> Bool { policy.type.flatMap { types[$0]?.isCritical } ?? false }
}
