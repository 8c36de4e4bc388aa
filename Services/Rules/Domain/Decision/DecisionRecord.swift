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
struct DecisionRecord: Hashable, Sendable {
    var notification: UUID
    /// From 0; what is held is decided about again under the next number.
    var step: Int
    var event: UUID
    var rule: String
    var person: PersonKey
    var decision: RuleDecision
    /// The version of the rules that decided; `nil` when the app has none any more.
    var ruleSet: UUID?
}
