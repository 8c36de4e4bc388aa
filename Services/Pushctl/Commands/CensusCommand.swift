import ArgumentParser
import DecisionLog
import PushProtocol

/// `pushctl census`: the number of notifications in each state, and the missing ones.
struct CensusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "census",
        abstract: "Print the number of notifications in each state; exit code 1 if any is missing.",
        discussion: """
            Settled states cover the last hour, all others every notification. The numbers add up to the total. For a
            missing notification it prints the stage, the oldest one and the next command. Also exits with 1 if rules
            has not counted for a minute.
            """)

    @Option(help: "Only this app.") var app: String?
    @OptionGroup var output: OutputOption

    func run() async throws {
        let app = try app.map { try AppID(named: $0) }
        let census = try await withDatabase { try await CensusTable($0).read(app: app) }
        try output.write(census.json, text: census.lines)
        guard census.gaps.isEmpty, census.isCurrent else { throw ExitCode(CommandStatus.findings.rawValue) }
    }
}
