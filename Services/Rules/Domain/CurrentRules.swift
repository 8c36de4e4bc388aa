import Synchronization

/// The rules in force, replaced as a whole.
final class CurrentRules: Sendable {
    private let state: Mutex<RuleSets>

    init(_ ruleSets: RuleSets) { state = Mutex(ruleSets) }

    var ruleSets: RuleSets { state.withLock { $0 } }

    func put(_ ruleSets: RuleSets) { state.withLock { $0 = ruleSets } }
}
