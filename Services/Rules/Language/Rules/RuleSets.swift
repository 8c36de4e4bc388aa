package import PushProtocol

/// The rule sets in force, one for each app.
package struct RuleSets: Sendable {
    package let ruleSets: [AppID: RuleSet]
    /// The apps that borrow an event, by owner and event type.
    let borrowers: [AppID: [String: [AppID]]]
    private let isConfigured: @Sendable (AppID) -> Bool

    /// - Parameter isConfigured: whether an app is configured. It then takes direct notifications, also without a rule
    ///   file.
    package init(_ ruleSets: [RuleSet], isConfigured: @escaping @Sendable (AppID) -> Bool = { _ in false }) {
        self.ruleSets = Dictionary(ruleSets.map { ($0.app, $0) }) { first, _ in first }
        borrowers = Self.borrowers(ruleSets)
        self.isConfigured = isConfigured
    }

    func map(_ change: (RuleSet) -> RuleSet) -> RuleSets {
        RuleSets(ruleSets.values.map(change), isConfigured: isConfigured)
    }

    /// The rules in force for an app; `nil` if it has no rule file and is not configured.
    package subscript(app: AppID) -> RuleSet? {
        ruleSets[app] ?? (isConfigured(app) ? .builtIn(for: app) : nil)
    }

    /// Evaluates an event by the rules of its app.
    ///
    /// - Parameters:
    ///   - arrival: the time at which the lifetime of the notifications begins.
    ///   - isDecided: whether the event was decided before, so that it may have expired since.
    package func evaluate(
        _ event: DomainEvent, now: Timestamp, arrivedAt arrival: Timestamp, isDecided: Bool = false
    ) -> Evaluation {
        if event.type == SegmentPage.eventType { return evaluatePage(event, arrivedAt: arrival) }
        let isDirect = event.type == DirectNotification.eventType
        guard let ruleSet = isDirect ? self[event.app] : ruleSets[event.app] else { return .unknownApp }
        guard isDirect || ruleSet.events.contains(event.type) else { return .unknownType }
        if !isDecided, let expiresAt = event.expiresAt, Timestamp(expiresAt) <= now { return .expired }
        do {
            return .notify(
                try ruleSet.evaluate(event, now: now, arrivedAt: arrival),
                signals: try ruleSet.signals(of: event), by: ruleSet)
        } catch {
            return .unrenderable(error)
        }
    }

    /// Evaluates a page of a segment. It has no signals: its event's signals took effect before.
    private func evaluatePage(_ event: DomainEvent, arrivedAt arrival: Timestamp) -> Evaluation {
        guard let ruleSet = ruleSets[event.app] else { return .unknownApp }
        do {
            return .notify([try ruleSet.draft(of: event, arrivedAt: arrival)], signals: [], by: ruleSet)
        } catch {
            return .unrenderable(error)
        }
    }

    /// Returns the rule of a notification and the rule's set; `nil` if the app no longer has the rule.
    package func rule(of rendered: RenderedNotification) -> (rule: Rule, set: RuleSet)? {
        guard let set = self[rendered.app], let rule = set.rule(named: rendered.rule) else { return nil }
        return (rule, set)
    }

    package enum Evaluation: Sendable {
        /// The event's drafts and signals. Without a matching rule or a recipient, there are no drafts.
        case notify([NotificationDraft], signals: [Signal], by: RuleSet)
        case unrenderable(RenderError)
        case expired
        case unknownApp
        case unknownType
    }
}
