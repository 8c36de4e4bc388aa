import PushProtocol
import RuleLanguage
import Synchronization

/// The rules in force, replaced as a whole.
final class CurrentRules: Sendable {
    private let state: Mutex<State>

    private struct State {
        var ruleSets: RuleSets
        var stops: VariantStops = [:]
    }

    init(_ ruleSets: RuleSets) { state = Mutex(State(ruleSets: ruleSets)) }

    var ruleSets: RuleSets { state.withLock { $0.ruleSets } }

    /// Whether the app's rule file has `clear-read`.
    func clearsRead(_ app: AppID) -> Bool { ruleSets[app]?.defaults.clearsRead ?? false }

    /// Replaces the rules. Stopped variants stay stopped.
    func put(_ ruleSets: RuleSets) {
        state.withLock { $0.ruleSets = ruleSets.stopping($0.stops) }
    }

    /// Replaces the stopped variants.
    func stop(_ stops: VariantStops) {
        state.withLock { state in
            guard stops != state.stops else { return }
            state.stops = stops
            state.ruleSets = state.ruleSets.stopping(stops)
        }
    }
}
