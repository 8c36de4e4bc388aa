import ArgumentParser
import DecisionLog
import FoundationEssentials
import PushProtocol

/// `pushctl rules counts`: outcome counts of each rule.
struct RuleCountsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "counts", abstract: "Print the counts of each rule: sent, accepted, failed, opened, dismissed.",
        discussion: """
            Counts whole hours, by the time of a notification's last decision; up to ten minutes old. Versions of a rule
            file are counted separately. The version is abbreviated; pushctl explain prints it in full.
            """)

    @Option(help: "Only rules of this app.") var app: String?
    @Option(help: "The start, such as 2026-03-31T09:00:00Z. Default: a day before --until.") var from: String?
    @Option(help: "Until when; now.") var until: String?
    @OptionGroup var output: OutputOption

    func run() async throws {
        let app = try app.map { try AppID(named: $0) }
        let (start, end) = (try from.map(Timestamp.init(argument:)), try until.map(Timestamp.init(argument:)))
        guard let window = CountWindow(from: start, until: end ?? .now) else {
            throw CommandError(
                "--from must be before --until, and at most \(CountWindow.maximumDays) days before it", .usage)
        }
        let counts = try await withDatabase { try await CountStore($0).counts(of: app, in: window) }
        try output.write(counts.json, text: counts.lines)
        if counts.countedAt == nil {
            OutputOption.remark("no hour in this range has been counted; check that rules is running")
        }
    }
}
