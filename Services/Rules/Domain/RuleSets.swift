import PushProtocol

/// The rule sets in force, one an app.
struct RuleSets: Sendable {
    let ruleSets: [AppID: RuleSet]

    init(_ ruleSets: [RuleSet]) {
        self.ruleSets = Dictionary(ruleSets.map { ($0.app, $0) }) { first, _ in first }
    }

    /// What an event means.
    func decide(_ event: DomainEvent, now: Timestamp) -> Decision {
        guard let ruleSet = ruleSets[event.app] else { return .unknownApp }
        guard ruleSet.events.contains(event.type) else { return .unknownType }
        if let expiresAt = event.expiresAt, Timestamp(expiresAt) <= now { return .expired }
        do {
            return .notify(
                try ruleSet.evaluate(event, now: now), prediction: try ruleSet.signals(of: event), by: ruleSet)
        } catch {
            return .unrenderable(error)
        }
    }

    /// One event's answer.
    enum Decision: Sendable {
        /// What is said, and by which rules, empty when no rule matches or nobody is left to tell; and what the event
        /// tells about people.
        case notify([NotificationDraft], prediction: [Signal], by: RuleSet)
        case unrenderable(RenderError)
        case expired
        case unknownApp
        case unknownType
    }
}
