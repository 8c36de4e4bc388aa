import AMQP
import ArgumentParser
import DecisionLog
import FeedbackStore
import Foundation
import Postgres
import PushProtocol
import RegistryStore
import ServiceConnections
import ServiceKit

/// `pushctl status`: queues, routes, guards, campaigns and the census on one screen.
struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show queues, routes, guards, campaigns and the census on one screen.",
        discussion: """
            Queues that are empty and consumed are only counted. A part without its setting (AMQP_URL, DATABASE_URL) is
            left out. Circuit breakers are in a sender's readiness: name its admin port with --service.

            Exit codes: 0; 1 a queue is missing; 69 broker or database cannot be reached.
            """)

    @OptionGroup var apps: AppsOption
    @Flag(help: "Also list queues that are empty and consumed.") var all = false
    @Flag(help: "Show it again and again, until Ctrl-C. An outage of broker or database is shown and does not end it.")
    var watch = false
    @Option(help: "Seconds between two readings of --watch.") var interval = 2.0
    @OptionGroup var services: ServicesOption
    @OptionGroup var output: OutputOption

    func validate() throws {
        guard interval >= 0.5, interval <= 3600 else { throw ValidationError("--interval is 0.5 to 3600 seconds") }
    }

    func run() async throws {
        let command = self
        guard watch else {
            let report = try await command.read { throw $0 }
            try command.show(report, isFirst: true)
            guard !report.isIncomplete else { throw ExitCode(CommandStatus.findings.rawValue) }
            return
        }
        try await untilInterrupted {
            var isFirst = true
            while true {
                // A starting server may refuse a login that it accepted before.
                let hasRead = !isFirst
                let report = try await command.read { error in
                    guard hasRead || error.status == .unavailable else { throw error }
                }
                try Task.checkCancellation()
                try command.show(report, isFirst: isFirst)
                isFirst = false
                try await Task.sleep(for: .seconds(command.interval))
            }
        }
    }

    private func show(_ report: StatusReport, isFirst: Bool) throws {
        if output.json { return try OutputOption.write(report.json) }
        let lines = report.lines(all: all, isColored: Terminal.isColored)
        // A terminal is redrawn: to the first line, each line to its end, and the rest of the screen.
        let text =
            watch && Terminal.isTerminal
            ? (isFirst ? "\u{1b}[2J" : "") + "\u{1b}[H" + lines.map { "\($0)\u{1b}[K\n" }.joined() + "\u{1b}[J"
            : lines.map { "\($0)\n" }.joined() + (watch ? "\n" : "")
        try OutputOption.write(text: text)
    }

    /// - Parameter passOver: throws an error that ends the command. Otherwise the part is reported as away.
    private func read(_ passOver: (CommandError) throws -> Void) async throws -> StatusReport {
        var report = StatusReport(at: Date(), services: [])
        if Environment.isSet(.amqpURL) {
            let queues = try apps.load().workQueues
            do {
                report.queues = try await readQueues(queues)
            } catch let error as CommandError {
                try Task.checkCancellation()
                try passOver(error)
                report.outages.broker = error.description
            }
        }
        if Environment.isSet(.databaseURL) {
            do {
                report.stored = try await withDatabase { try await Self.read($0) }
            } catch let error as CommandError {
                try Task.checkCancellation()
                try passOver(error)
                report.outages.database = error.description
            }
        }
        for url in services.service { report.services.append(await ServiceProbe(url: url).answer()) }
        report.at = Date()
        return report
    }

    private func readQueues(_ queues: [WorkQueue]) async throws -> [StatusReport.Queue] {
        try await withBroker { administrator in
            var found: [StatusReport.Queue] = []
            for queue in queues {
                let status = try await administrator.queueStatus(queue.name)
                let dead = try await administrator.queueStatus(queue.deadName)
                found.append(
                    StatusReport.Queue(
                        name: queue.name, ready: status?.messages, consumers: status?.consumers,
                        deadLetters: dead?.messages))
            }
            return found
        }
    }

    private static func read(_ database: PostgresPool) async throws -> StatusReport.Stored {
        let quarantine = QuarantineStore(database)
        return StatusReport.Stored(
            census: try await CensusTable(database).read(app: nil),
            routes: try await RouteStatusStore(database).routes(), guards: try await quarantine.guards(app: nil),
            quarantined: try await quarantine.list(app: nil, limit: 1).total,
            campaigns: try await CampaignStore(database).summaries(app: nil, unfinished: true, limit: 20),
            deadRows: try await DeadRowStore(database, tables: DeadRowTable.all).count(.init()))
    }
}
