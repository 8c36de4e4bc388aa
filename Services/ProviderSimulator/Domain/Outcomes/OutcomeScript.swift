import PushProtocol

struct OutcomeScript: Sendable {
    let provider: ProviderKind
    let scope: ScriptedOutcomeStore.Scope
    let outcome: ScriptedOutcome

    private struct ScriptKey: Hashable {
        let provider: ProviderKind
        let scope: ScriptedOutcomeStore.Scope
    }

    /// Reads one outcome or a list. An error names the element and the mistake.
    static func read(_ value: JSONValue) throws(ControlRequestError) -> [OutcomeScript] {
        guard case .array(let elements) = value else { return [try OutcomeReader(value, at: "").script()] }
        var scripts: [OutcomeScript] = []
        for (index, element) in elements.enumerated() {
            scripts.append(try OutcomeReader(element, at: "[\(index)].").script())
        }
        var shares: [ScriptKey: Double] = [:]
        for script in scripts {
            guard case .share(let share) = script.outcome.trigger else { continue }
            shares[ScriptKey(provider: script.provider, scope: script.scope), default: 0] += share
        }
        // Allows for rounding.
        guard shares.values.allSatisfy({ $0 < 1.000_001 }) else {
            throw ControlRequestError("the shares for one token, app or provider add up to more than 1")
        }
        return scripts
    }
}
