import Synchronization

/// Every scripted outcome that is still to be played. Safe from any thread.
///
/// The most particular script is played: that of the token, then that of the app, then that of the whole provider.
/// Within one script, the outcomes for each n-th request come first, then those for a share of the requests, then the
/// sequence: its outcomes are played in the order they were given, each with a count makes room for the next after so
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
        var scripts: [Part: OutcomeSequence] = [:]
        /// How often the scenario in a token's own prefix was played, for those with a count.
        var played: [Part: Int] = [:]
        /// How often was drawn for each subject.
        var turns: [String: UInt64] = [:]
        var seed: UInt64 = 0
        /// Whether anything in the book depends on chance: drawing costs a look at `turns`.
        var usesChance = false
    }

    /// Subjects that are told apart for drawing; with more of them the count begins again.
    private static let maximumSubjects = 1_000_000

    private let state = Mutex(State())

    /// Replaces what is left of the script for `scope`.
    func script(_ outcomes: [ScriptedOutcome], for party: Party, _ scope: Scope) {
        state.withLock { state in
            let part = Part(party: party, scope: scope)
            state.scripts[part] = outcomes.isEmpty ? nil : OutcomeSequence(outcomes)
            state.usesChance = state.scripts.values.contains(where: \.usesChance)
        }
    }

    /// What is drawn from now on depends on `seed` alone.
    func reseed(_ seed: UInt64) {
        state.withLock { state in
            state.seed = seed
            state.turns = [:]
        }
    }

    /// Ends every script; the seed begins again at 0.
    func removeAll() { state.withLock { $0 = State() } }

    /// How many outcomes are waiting.
    var count: Int { state.withLock { $0.scripts.values.reduce(0) { $0 + $1.count } } }

    /// What to do about one request; `nil` to be oneself.
    ///
    /// - Parameter scenario: what the token's own text asks for, played when no script is about the token.
    func take(_ party: Party, token: String?, app: String?, scenario: ScriptedOutcome? = nil) -> ScriptedOutcome? {
        state.withLock { state -> ScriptedOutcome? in
            if state.scripts.isEmpty, scenario == nil { return nil }
            var draws = state.draws(for: token ?? app ?? party.rawValue)
            let outcome: ScriptedOutcome? =
                if let token, let scripted = state.take(Part(party: party, scope: .token(token)), &draws) {
                    scripted
                } else if let token, let scenario {
                    state.play(scenario, Part(party: party, scope: .token(token)))
                } else if let app, let scripted = state.take(Part(party: party, scope: .app(app)), &draws) {
                    scripted
                } else {
                    state.take(Part(party: party, scope: .everything), &draws)
                }
            return outcome?.drawn(&draws)
        }
    }

    fileprivate static func nextTurn(of subject: String, in turns: inout [String: UInt64]) -> UInt64 {
        if turns.count >= maximumSubjects { turns.removeAll(keepingCapacity: true) }
        turns[subject, default: 0] += 1
        return turns[subject] ?? 0
    }
}

extension OutcomeBook.State {
    fileprivate mutating func draws(for subject: String) -> Draws {
        guard usesChance else { return Draws(seed: seed, subject: "", turn: 0) }
        return Draws(seed: seed, subject: subject, turn: OutcomeBook.nextTurn(of: subject, in: &turns))
    }

    fileprivate mutating func take(_ part: OutcomeBook.Part, _ draws: inout Draws) -> ScriptedOutcome? {
        guard let index = scripts.index(forKey: part) else { return nil }
        let outcome = scripts.values[index].take(&draws)
        if scripts.values[index].isEmpty { scripts.remove(at: index) }
        return outcome
    }

    fileprivate mutating func play(_ scenario: ScriptedOutcome, _ part: OutcomeBook.Part) -> ScriptedOutcome? {
        guard let count = scenario.count else { return scenario }
        guard played[part, default: 0] < count else { return nil }
        played[part, default: 0] += 1
        return scenario
    }
}
