import ArgumentParser
import DecisionLog
import FoundationEssentials
import PushProtocol
import RuleLanguage

/// `pushctl rules funnel`: the notifications from the decision to the user.
struct RuleFunnelCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "funnel",
        abstract: "Print how many notifications were decided, sent, accepted, opened and dismissed.",
        discussion: """
            By rule, type or day, it counts notifications. By platform or app version, it counts the pushes to devices; \
            deleted registrations are “unknown”. Decisions older than the service keeps are not counted.
            """)

    private static let defaultLength = Duration.seconds(7 * 86_400)

    @Argument(help: ArgumentHelp("The app's rule file, or the folder of rule files.", valueName: "path"))
    var path: String
    @Option(help: "The app.") var app: String
    @Option(help: "rule, type, day, platform or app-version.") var by = Funnel.Property.rule
    @Option(help: "The start, such as 2026-03-31T09:00:00Z. Default: 7 days before --until.") var from: String?
    @Option(help: "Until when; now.") var until: String?
    @OptionGroup var output: OutputOption

    func run() async throws {
        let report = try DecisionReport(path, app: app, from: from, until: until, length: Self.defaultLength)
        var funnel = try await withDatabase { database in
            try await FunnelStore(database).funnel(
                by: by, of: report.app, from: report.from, until: report.until, zone: report.rules.defaults.zone.name)
        }
        if by == .type { funnel = funnel.byType(report.rules.typesByRule) }
        try output.write(funnel.json, text: funnel.lines)
    }
}

extension Funnel.Property: ExpressibleByArgument {}
