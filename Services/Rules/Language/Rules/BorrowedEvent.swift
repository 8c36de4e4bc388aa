import Primitives
package import PushProtocol

/// An event of another app: an entry of `events` with `from`.
package struct BorrowedEvent: Hashable, Sendable {
    package var type: String
    /// The app whose publisher publishes the event.
    package var owner: AppID
    /// The line in the rule file.
    var line: Int
}

extension RuleSets {
    /// The apps that get a copy of an event. An event is not copied a second time, because no app may borrow an event
    /// that its owner borrows itself (``problems(sharing:)``).
    package func borrowers(of event: DomainEvent) -> [AppID] {
        borrowers[event.app]?[event.type] ?? []
    }

    static func borrowers(_ ruleSets: some Collection<RuleSet>) -> [AppID: [String: [AppID]]] {
        var borrowers: [AppID: [String: [AppID]]] = [:]
        for ruleSet in ruleSets.sorted(by: { $0.app < $1.app }) {
            for event in ruleSet.borrowedEvents {
                borrowers[event.owner, default: [:]][event.type, default: []].append(ruleSet.app)
            }
        }
        return borrowers
    }

    /// Returns the mistakes of `from` that only all files together show.
    ///
    /// - Parameter isShared: whether the apps file lets the first app's events reach the second app.
    func problems(sharing isShared: (AppID, AppID) -> Bool) -> [RuleProblem] {
        ruleSets.values.sorted { $0.app < $1.app }.flatMap { ruleSet in
            ruleSet.borrowedEvents.compactMap { event in
                problem(event, of: ruleSet.app, isShared: isShared(event.owner, ruleSet.app)).map { problem in
                    RuleProblem(
                        file: "\(ruleSet.app).yaml", line: event.line, key: "events.\(event.type).from",
                        problem: problem)
                }
            }
        }
    }

    private func problem(_ event: BorrowedEvent, of app: AppID, isShared: Bool) -> String? {
        guard let owner = ruleSets[event.owner] else {
            let hint = NearestMatch.of(event.owner.rawValue, among: ruleSets.keys.map(\.rawValue))
            return "there is no rule file of “\(event.owner)”; "
                + (hint.map { "did you mean “\($0)”?" } ?? "its events are dropped without one")
        }
        guard owner.events.contains(event.type) else {
            return "\(event.owner).yaml does not list this event; describe it there under “events”"
        }
        if let origin = owner.borrowedEvents.first(where: { $0.type == event.type }) {
            return "“\(event.owner)” has this event from “\(origin.owner)” itself; name that app"
        }
        return isShared
            ? nil : "the apps file does not allow it; add “\(app)” to “events-to” of “\(event.owner)”"
    }
}
