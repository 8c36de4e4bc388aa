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

/// A stored decision.
struct DecisionRecord: Hashable, Sendable {
    var notification: UUID
    /// The number of the decision on this notification, from 0. Each decision after a hold has the next number.
    var step: Int
    var event: UUID
    var rule: String
    var person: PersonKey
    var decision: RuleDecision
    /// The version of the rules that decided; `nil` if the app no longer has rules.
    var ruleSet: UUID?
}
