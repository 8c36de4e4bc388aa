import Synchronization

/// The rules in force: one value that everything decides by, exchanged as a whole.
final class CurrentRules: Sendable {
    private let state: Mutex<RuleSets>

    init(_ ruleSets: RuleSets) { state = Mutex(ruleSets) }

    var ruleSets: RuleSets { state.withLock { $0 } }

    func put(_ ruleSets: RuleSets) { state.withLock { $0 = ruleSets } }
}
