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
            """)

    @OptionGroup var apps: AppsOption
    @Flag(help: "Also list queues that are empty and consumed.") var all = false
    @Flag(help: "Show it again and again, until Ctrl-C.") var watch = false
    @Option(help: "Seconds between two readings of --watch.") var interval = 2.0
    @Option(help: "The URL of a process's admin port, to show its readiness; may be repeated.") var service: [String] =
        []
    @OptionGroup var output: OutputOption

    func validate() throws {
        guard interval >= 0.5, interval <= 3600 else { throw ValidationError("--interval is 0.5 to 3600 seconds") }
    }

    func run() async throws {
        let command = self
        guard watch else { return try await command.show(isFirst: true) }
        try await untilInterrupted {
            var isFirst = true
            while true {
                try await command.show(isFirst: isFirst)
                isFirst = false
                try await Task.sleep(for: .seconds(command.interval))
            }
        }
    }

    private func show(isFirst: Bool) async throws {
        let report = try await read()
        if output.json { return try OutputOption.write(report.json) }
        let lines = report.lines(all: all, isColored: Terminal.isColored)
        // A terminal is redrawn: to the first line, each line to its end, and the rest of the screen.
        let text =
            watch && Terminal.isTerminal
            ? (isFirst ? "\u{1b}[2J" : "") + "\u{1b}[H" + lines.map { "\($0)\u{1b}[K\n" }.joined() + "\u{1b}[J"
            : lines.map { "\($0)\n" }.joined() + (watch ? "\n" : "")
        try OutputOption.write(text: text)
    }

    private func read() async throws -> StatusReport {
        let queues = try await Environment.isSet(.amqpURL) ? readQueues(apps.load().workQueues) : nil
        let stored = try await Environment.isSet(.databaseURL) ? withDatabase { try await Self.read($0) } : nil
        var services: [ServiceProbe.Answer] = []
        for url in service { services.append(await ServiceProbe(url: url).answer()) }
        return StatusReport(at: Date(), queues: queues, stored: stored, services: services)
    }

    private func readQueues(_ queues: [WorkQueue]) async throws -> [StatusReport.Queue] {
        try await withBroker { administrator in
            var found: [StatusReport.Queue] = []
            for queue in queues {
                guard let status = try await administrator.queueStatus(queue.name) else {
                    throw CommandError("the broker has no queue \(queue.name); run pushctl topology apply", .notFound)
                }
                let dead = try await administrator.queueStatus(queue.deadName)
                found.append(
                    StatusReport.Queue(
                        name: queue.name, ready: status.messages, consumers: status.consumers,
                        deadLetters: dead?.messages ?? 0))
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
