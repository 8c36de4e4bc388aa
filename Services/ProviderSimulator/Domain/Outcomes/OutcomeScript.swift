import PushProtocol

struct OutcomeScript: Sendable {
    let key: ScriptedOutcomeStore.ScriptKey
    let outcome: ScriptedOutcome

    /// Reads one outcome or a list. An error names the element and the mistake.
    static func read(_ value: JSONValue) throws(ControlRequestError) -> [OutcomeScript] {
        let scripts = try MemberReader.elements(of: value) { (path, element) throws(ControlRequestError) in
            try OutcomeReader(element, at: path).script()
        }
        // The share of a single outcome is at most 1.
        var shares: [ScriptedOutcomeStore.ScriptKey: Double] = [:]
        for script in scripts {
            guard case .share(let share) = script.outcome.trigger else { continue }
            shares[script.key, default: 0] += share
        }
        // Allows for rounding.
        guard shares.values.allSatisfy({ $0 < 1.000_001 }) else {
            throw ControlRequestError("the shares for one token, app or provider add up to more than 1")
        }
        return scripts
    }
}
