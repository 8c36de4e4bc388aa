import ArgumentParser
import DecisionLog
import Foundation
import PushProtocol

/// `pushctl rules counts`: what came of each rule.
struct RuleCountsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "counts", abstract: "Tells what came of each rule: sent, accepted, failed, opened, dismissed.",
        discussion: """
            Of notifications whose last decision fell into whole hours, counted at most ten minutes ago. Each rule is
            counted by the version of its file, of which the beginning is shown; pushctl explain shows it whole.
            """)

    @Option(help: "Only this app's rules.") var app: String?
    @Option(help: "From when on, such as 2026-03-31T09:00:00Z; a day before --until.") var from: String?
    @Option(help: "Until when; now.") var until: String?

    func run() async throws {
        let app = try app.map { try AppID(named: $0) }
        guard let window = CountWindow(from: try from.map(moment), until: try until.map(moment) ?? .now) else {
            throw Refusal("--from is not before --until, or more than \(CountWindow.longestInDays) days before it")
        }
        let counts = try await withDatabase { try await CountStore($0).counts(of: app, in: window) }
        for line in counts.lines { print(line) }
        if counts.countedAt == nil {
            FileHandle.standardError.write(Data("no hour of it was counted; is rules running?\n".utf8))
        }
    }

    private func moment(_ text: String) throws -> Timestamp {
        guard let date = RFC3339.date(from: text) else {
            throw Refusal("“\(text)” is not a time such as 2026-03-31T09:00:00Z")
        }
        return Timestamp(date)
    }
}
