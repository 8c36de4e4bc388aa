import PushProtocol
import RuleLanguage
import Synchronization

/// The rules in force, replaced as a whole.
final class CurrentRules: Sendable {
    private let state: Mutex<RuleSets>

    init(_ ruleSets: RuleSets) { state = Mutex(ruleSets) }

    var ruleSets: RuleSets { state.withLock { $0 } }

    /// Whether the app's rule file has `clear-read`.
    func clearsRead(_ app: AppID) -> Bool { ruleSets[app]?.defaults.clearsRead ?? false }

    func put(_ ruleSets: RuleSets) { state.withLock { $0 = ruleSets } }
}
