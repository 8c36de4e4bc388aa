import PushProtocol

/// A script as it is posted to the control port: outcomes, and whom they are for.
struct OutcomeScript: Sendable {
    let party: Party
    let scope: OutcomeBook.Scope
    let outcome: ScriptedOutcome

    private struct Part: Hashable {
        let party: Party
        let scope: OutcomeBook.Scope
    }

    /// Reads one outcome or a list of them; a problem says which and what is wrong.
    static func read(_ value: JSONValue) throws(ControlProblem) -> [OutcomeScript] {
        guard case .array(let elements) = value else { return [try OutcomeReader(value, at: "").script()] }
        var scripts: [OutcomeScript] = []
        for (index, element) in elements.enumerated() {
            scripts.append(try OutcomeReader(element, at: "[\(index)].").script())
        }
        var shares: [Part: Double] = [:]
        for script in scripts {
            guard case .share(let share) = script.outcome.occasion else { continue }
            shares[Part(party: script.party, scope: script.scope), default: 0] += share
        }
        // A little above 1 is rounding.
        guard shares.values.allSatisfy({ $0 < 1.000_001 }) else {
            throw ControlProblem("the shares for one token, app or provider add up to more than 1")
        }
        return scripts
    }
}
