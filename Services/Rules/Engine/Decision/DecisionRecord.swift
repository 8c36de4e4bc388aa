package import FoundationEssentials
package import PushProtocol

package struct PersonKey: Hashable, Comparable, Sendable {
    package var app: AppID
    package var user: UserID

    package init(
        app: AppID, user: UserID
    ) {
        self.app = app
        self.user = user
    }

    package static func < (a: PersonKey, b: PersonKey) -> Bool {
        (a.app.rawValue, a.user.rawValue) < (b.app.rawValue, b.user.rawValue)
    }
}

package struct DecisionRecord: Hashable, Sendable {
    package var notification: UUID
    /// The number of the decision on this notification, from 0. Each decision after a hold has the next number.
    package var step: Int
    package var event: UUID
    package var rule: String
    package var person: PersonKey
    package var decision: RuleDecision
    /// The version of the rules that decided; `nil` if the app no longer has rules.
    package var ruleSet: UUID?

    package init(
        notification: UUID, step: Int, event: UUID, rule: String, person: PersonKey, decision: RuleDecision,
        ruleSet: UUID? = nil
    ) {
        self.notification = notification
        self.step = step
        self.event = event
        self.rule = rule
        self.person = person
        self.decision = decision
        self.ruleSet = ruleSet
    }
}
