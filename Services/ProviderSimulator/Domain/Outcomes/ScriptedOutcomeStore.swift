import Synchronization

/// The scripted outcomes that are not yet played. Safe from any thread.
///
/// Scripts of the token come first, then of the app, then of the provider. Within a script, `every` comes before
/// `share`, and `share` before the sequence. An outcome with a count ends after that many requests; after the last one
/// the provider accepts again.
final class ScriptedOutcomeStore: Sendable {
    /// The requests that a script applies to.
    enum Scope: Hashable, Sendable {
        /// A device token, registration token, FID or subscription.
        case token(String)
        /// A bundle topic, an FCM project, or the app of a subscription.
        case app(String)
        case everything
    }

    struct ScriptKey: Hashable {
        let provider: ProviderKind
        let scope: Scope
    }

    fileprivate struct State {
        var scripts: [ScriptKey: OutcomeSequence] = [:]
        /// How many times a token's scenario with a count was played.
        var played: [ScriptKey: Int] = [:]
        /// The number of draws for each subject.
        var drawCounts: [String: UInt64] = [:]
        var seed: UInt64 = 0
        /// Whether any script is random. Otherwise no draws are counted.
        var usesChance = false
    }

    /// The maximum number of subjects. Beyond it, all counts restart.
    private static let maximumSubjects = 1_000_000

    private let state = Mutex(State())

    /// Replaces the remaining script of `scope`.
    func script(_ outcomes: [ScriptedOutcome], for key: ScriptKey) {
        state.withLock { state in
            state.scripts[key] = outcomes.isEmpty ? nil : OutcomeSequence(outcomes)
            state.usesChance = state.scripts.values.contains(where: \.usesChance)
        }
    }

    /// Makes later draws depend on `seed` alone.
    func reseed(_ seed: UInt64) {
        state.withLock { state in
            state.seed = seed
            state.drawCounts = [:]
        }
    }

    /// Removes every script and resets the seed to 0.
    func removeAll() { state.withLock { $0 = State() } }

    /// The outcome of one request; `nil` for the provider's default.
    ///
    /// - Parameter scenario: encoded in the token, played when no script names the token.
    func take(_ provider: ProviderKind, token: String?, app: String?, scenario: ScriptedOutcome? = nil)
        -> ScriptedOutcome?
    {
        state.withLock { state -> ScriptedOutcome? in
            if state.scripts.isEmpty, scenario == nil { return nil }
            var random = state.random(for: token ?? app ?? provider.rawValue)
            let outcome: ScriptedOutcome? =
                if let token, let scripted = state.take(ScriptKey(provider: provider, scope: .token(token)), &random) {
                    scripted
                } else if let token, let scenario {
                    state.play(scenario, ScriptKey(provider: provider, scope: .token(token)))
                } else if let app, let scripted = state.take(ScriptKey(provider: provider, scope: .app(app)), &random) {
                    scripted
                } else {
                    state.take(ScriptKey(provider: provider, scope: .everything), &random)
                }
            return outcome?.sampled(&random)
        }
    }

    fileprivate static func nextDrawNumber(of subject: String, in drawCounts: inout [String: UInt64]) -> UInt64 {
        if drawCounts.count >= maximumSubjects { drawCounts.removeAll(keepingCapacity: true) }
        drawCounts[subject, default: 0] += 1
        return drawCounts[subject] ?? 0
    }
}

extension ScriptedOutcomeStore.State {
    fileprivate mutating func random(for subject: String) -> SeededRandom {
        guard usesChance else { return SeededRandom(seed: seed, subject: "", drawNumber: 0) }
        return SeededRandom(
            seed: seed, subject: subject, drawNumber: ScriptedOutcomeStore.nextDrawNumber(of: subject, in: &drawCounts))
    }

    fileprivate mutating func take(_ key: ScriptedOutcomeStore.ScriptKey, _ random: inout SeededRandom)
        -> ScriptedOutcome?
    {
        guard let index = scripts.index(forKey: key) else { return nil }
        let outcome = scripts.values[index].take(&random)
        if scripts.values[index].isEmpty { scripts.remove(at: index) }
        return outcome
    }

    fileprivate mutating func play(_ scenario: ScriptedOutcome, _ key: ScriptedOutcomeStore.ScriptKey)
        -> ScriptedOutcome?
    {
        guard let count = scenario.count else { return scenario }
        guard played[key, default: 0] < count else { return nil }
        played[key, default: 0] += 1
        return scenario
    }
}
