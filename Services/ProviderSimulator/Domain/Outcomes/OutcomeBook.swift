import Synchronization

/// Every scripted outcome that is still to be played. Safe from any thread.
///
/// The most particular script is played: that of the token, then that of the app, then that of the whole provider. The
/// outcomes of one script are played in the order they were given; each with a count makes room for the next after so
/// many requests, and after the last the provider is itself again.
final class OutcomeBook: Sendable {
    /// For which requests.
    enum Scope: Hashable, Sendable {
        /// A device token, a registration token or a FID.
        case token(String)
        /// A bundle topic, or an FCM project.
        case app(String)
        case everything
    }

    fileprivate struct Part: Hashable {
        let party: Party
        let scope: Scope
    }

    fileprivate struct State {
        var scripts: [Part: [ScriptedOutcome]] = [:]
        /// How often the scenario in a token's own prefix was played, for those with a count.
        var played: [Part: Int] = [:]
    }

    private let state = Mutex(State())

    /// Replaces what is left of the script for `scope`.
    func script(_ outcomes: [ScriptedOutcome], for party: Party, _ scope: Scope) {
        state.withLock { $0.scripts[Part(party: party, scope: scope)] = outcomes.isEmpty ? nil : outcomes }
    }

    func removeAll() { state.withLock { $0 = State() } }

    /// How many outcomes are waiting.
    var count: Int { state.withLock { $0.scripts.values.reduce(0) { $0 + $1.count } } }

    /// What to do about one request; `nil` to be oneself.
    ///
    /// - Parameter scenario: what the token's own text asks for, played when no script is about the token.
    func take(_ party: Party, token: String?, app: String?, scenario: ScriptedOutcome? = nil) -> ScriptedOutcome? {
        state.withLock { state -> ScriptedOutcome? in
            if state.scripts.isEmpty, scenario == nil { return nil }
            if let token, let outcome = state.take(Part(party: party, scope: .token(token))) { return outcome }
            if let token, let scenario { return state.play(scenario, Part(party: party, scope: .token(token))) }
            if let app, let outcome = state.take(Part(party: party, scope: .app(app))) { return outcome }
            return state.take(Part(party: party, scope: .everything))
        }
    }
}

extension OutcomeBook.State {
    fileprivate mutating func take(_ part: OutcomeBook.Part) -> ScriptedOutcome? {
        guard let outcome = scripts[part]?.first else { return nil }
        guard let count = outcome.count else { return outcome }
        if count > 1 {
            scripts[part]?[0].count = count - 1
        } else {
            scripts[part]?.removeFirst()
            if scripts[part]?.isEmpty == true { scripts[part] = nil }
        }
        return outcome
    }

    fileprivate mutating func play(_ scenario: ScriptedOutcome, _ part: OutcomeBook.Part) -> ScriptedOutcome? {
        guard let count = scenario.count else { return scenario }
        guard played[part, default: 0] < count else { return nil }
        played[part, default: 0] += 1
        return scenario
    }
}
