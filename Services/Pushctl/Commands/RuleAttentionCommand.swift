import ArgumentParser
import DecisionLog
import FoundationEssentials
import PushProtocol
import RuleLanguage

/// `pushctl rules attention`: the notifications that users get on a day.
struct RuleAttentionCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "attention",
        abstract: "Print how many notifications users get on a day, from which rules, and who gets the most.",
        discussion: """
            Counts notifications that users notice; not silent pushes, nor new states of a live surface. A day is that of \
            the app's time zone. “daily-promise” of the rule file is the number that the app promises its users at most. \
            Decisions older than the service keeps are not counted.
            """)

    private static let defaultLength = Duration.seconds(7 * 86_400)

    @Argument(help: ArgumentHelp("The app's rule file, or the folder of rule files.", valueName: "path"))
    var path: String
    @Option(help: "The app.") var app: String
    @Option(help: "The start, such as 2026-03-31T09:00:00Z. Default: 7 days before --until.") var from: String?
    @Option(help: "Until when; now.") var until: String?
    @OptionGroup var output: OutputOption

    func run() async throws {
        let asked = try DecisionReport(path, app: app, from: from, until: until, length: Self.defaultLength)
        let report = try await withDatabase { database in
            try await AttentionStore(database).report(
                of: asked.rules.visibleRules, app: asked.app, from: asked.from, until: asked.until,
                zone: asked.rules.defaults.zone.name, promise: asked.rules.defaults.dailyPromise)
        }
        try output.write(report.json, text: report.lines)
    }
}
