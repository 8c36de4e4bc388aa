import FoundationEssentials
import RuleLanguage

package import PushProtocol

/// The rule files of a folder, and the decisions about single example events, for `pushctl app check`.
package struct ExampleEvents {
    private let ruleSets: RuleSets

    /// A mistake in rule files, one line each: `file:line: key: problem`, with the file's name below the folder.
    package struct Mistakes: Error {
        package let lines: [String]
    }

    /// The apps with a rule file.
    package let apps: Set<AppID>

    package init(rules folder: String) throws(Mistakes) {
        do throws(RuleFileError) {
            ruleSets = try RuleDirectory.load(folder)
        } catch {
            throw Mistakes(lines: error.problems.map(\.description))
        }
        apps = Set(ruleSets.ruleSets.keys)
    }

    /// The apps whose rule files list the event type.
    package func apps(listing type: String) -> [AppID] {
        ruleSets.ruleSets.filter { $0.value.events.contains(type) }.keys.sorted()
    }

    /// Decides an event with a dry run.
    ///
    /// - Returns: one line for each decision, `user: rule: decision (reason)`.
    /// - Throws: an error whose description is the reason for which the event is refused.
    package func decisions(on event: JSONValue, of app: AppID) throws -> [String] {
        let line = try WireCoding.encode(JSONValue.object(["app": .string(app.rawValue), "event": event]))
        let recorded = try DryRunFiles.events(
            String(decoding: line, as: UTF8.self), name: "the event", ruleSets: ruleSets, start: DryRunOptions.start)
        var dryRun = DryRun(ruleSets)
        for one in recorded { dryRun.process(one) }
        if let refusal = dryRun.refusals.first { throw DryRunFiles.Problem(description: refusal.reason) }
        return dryRun.predictions.map { "\($0.user): \($0.rule): \($0.decision.readableText)" }
    }
}
