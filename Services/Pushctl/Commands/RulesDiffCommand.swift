import ArgumentParser
import DecisionLog
import Foundation
import PushProtocol
import RuleDryRun
import RuleEngine
import RuleLanguage

/// `pushctl rules diff`: compares two versions of rule files by events in a file, or by recorded events.
struct RulesDiffCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "diff",
        abstract: "Decide recorded events by old and by new rules, and print the pushes that differ.",
        discussion: """
            With --recorded, the events and the preferences of that time come from the database, for apps with \
            “recording” in the apps file. It also checks that the old rules make the recorded decisions again. A login \
            in the group heliograph_recordings may read them. Without it, they come from --events and --people.

            \(RuleTool.branches)

            \(RuleTool.exitCodes)
            """)

    @Argument(help: ArgumentHelp("The old rules: a folder of rule files, or a single file.", valueName: "old"))
    var old: String
    @Argument(help: ArgumentHelp("The new rules. Left out: the old rules, changed by --branch.", valueName: "new"))
    var new: String?
    @Option(help: RuleTool.branchHelp) var branch: String?
    @Option(help: ArgumentHelp("The recorded events of this time until now, such as 7d or 12h.", valueName: "duration"))
    var recorded: String?
    @Option(help: ArgumentHelp("The events; “-” reads the standard input.", valueName: "file")) var events: String?
    @Option(
        name: [.customLong("people"), .customLong("users")],
        help: ArgumentHelp("Settings of users and members of groups.", valueName: "file"))
    var people: String?
    @Flag(help: "Print one JSON document instead of text.") var json = false

    func validate() throws {
        guard (recorded == nil) != (events == nil) else {
            throw ValidationError("give --recorded or --events, and not both")
        }
        guard recorded == nil || people == nil else {
            throw ValidationError("--people belongs to --events; recorded events have their own people")
        }
        if let recorded, Duration(withUnit: recorded) == nil {
            throw ValidationError("“\(recorded)” is not a duration such as 7d or 12h")
        }
    }

    func run() async throws {
        guard let recorded, let window = Duration(withUnit: recorded) else { return try runWithFile() }
        let result: RecordedComparison.Result
        do {
            let comparison = try RecordedComparison(old: old, new: new, branch: branch)
            result = try await compare(comparison, from: (Timestamp.now - window).date)
        } catch let error as any RuleToolError {
            throw CommandError(error.description, .findings)
        }
        if json {
            try OutputOption.write(text: try WireCoding.text(result.json) + "\n")
        } else {
            for line in result.lines { print(line) }
        }
        if !result.isClean { throw ExitCode(CommandStatus.findings.rawValue) }
    }

    /// The command of the module `RuleDryRun`.
    private func runWithFile() throws {
        var arguments = [old] + [new].compactMap(\.self)
        for (name, value) in [("--branch", branch), ("--events", events), ("--people", people)] {
            if let value { arguments += ["\(name)=\(value)"] }
        }
        var command = try RuleTool.Diff.parse(arguments + (json ? ["--json"] : []))
        try command.run()
    }

    private func compare(
        _ comparison: RecordedComparison, from: Date
    ) async throws -> RecordedComparison.Result {
        try await withDatabase { database in
            var comparison = comparison
            let log = RecordingLog(database)
            var last: RecordingLog.Row?
            repeat {
                let rows = try await log.page(of: comparison.apps, from: from, after: last)
                let keys = comparison.process(try rows.compactMap(Recording.init))
                let logged = try await log.decisions(on: Set(keys.map(\.notification)))
                comparison.compare(
                    Dictionary(logged.compactMap { $0.entry }) { first, _ in first })
                last = rows.count == RecordingLog.page ? rows.last : nil
            } while last != nil
            return comparison.result()
        }
    }
}

extension Recording {
    /// - Returns: `nil` for a kind of a later release.
    fileprivate init?(_ row: RecordingLog.Row) throws {
        guard let app = AppID(rawValue: row.app),
            let body = try Recording.Body(kind: row.kind, text: row.body)
        else { return nil }
        self.init(
            app: app, event: row.event, ruleSet: row.ruleSet, at: Timestamp(row.at), count: row.decisions, body: body)
    }
}

extension RecordingLog.Decision {
    /// - Returns: `nil` for an answer or a reason of a later release.
    fileprivate var entry: (ReplayCheck.Key, RuleDecision)? {
        guard let answer = RuleDecision.Answer(word: answer, until: until.map(Timestamp.init)),
            let reason = RuleDecision.Cause(rawValue: reason)
        else { return nil }
        return (ReplayCheck.Key(notification: notification, step: step), RuleDecision(answer: answer, reason: reason))
    }
}
