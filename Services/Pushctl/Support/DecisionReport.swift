import FoundationEssentials
import PushProtocol
import RuleDryRun
import RuleLanguage

/// The app, rules and window of a report on the decision log.
struct DecisionReport {
    let app: AppID
    let rules: RuleSet
    let from: Date
    /// Exclusive.
    let until: Date

    /// - Parameters:
    ///   - path: the app's rule file, or the folder of rule files.
    ///   - from: `nil`: `length` before `until`.
    ///   - until: `nil`: now.
    init(_ path: String, app name: String, from: String?, until: String?, length: Duration) throws {
        let app = try AppID(named: name)
        self.app = app
        do { rules = try AppRuleFile(path, app: app).ruleSet } catch { throw CommandError("\(error)", .input) }
        let end = try until.map(Timestamp.init(argument:)) ?? .now
        let start = try from.map(Timestamp.init(argument:)) ?? end - length
        guard start < end else { throw CommandError("--from must be before --until", .usage) }
        (self.from, self.until) = (start.date, end.date)
    }
}
