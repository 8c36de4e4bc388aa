import ArgumentParser
import DecisionLog
import Foundation
import Postgres
import Primitives
import PushProtocol

/// `pushctl tail`: decisions and outcomes, as rules stores them.
struct TailCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tail",
        abstract: "Print decisions and outcomes of an app as they are stored, until Ctrl-C.",
        discussion: """
            Each row is printed once, in the order of its transaction. With --json, each row is one JSON document on a line.
            A row is late if it is stored long after its own time, such as a replayed outcome; see --window. While the
            database is away, the command waits; a row may then be printed twice.
            """)

    @Option(help: "The app.") var app: String
    @Option(help: "Only this user.") var user: String?
    @Option(help: "Seconds between two readings, at least. A reading takes a fifth of the time at most.") var interval =
        1.0
    @Option(help: "Minutes: rows whose own time is longer ago are not printed.") var window = 60
    @OptionGroup var output: OutputOption

    func validate() throws {
        guard interval >= 0.1, interval <= 3600 else { throw ValidationError("--interval is 0.1 to 3600 seconds") }
        guard (1...43_200).contains(window) else { throw ValidationError("--window is 1 to 43200 minutes") }
    }

    func run() async throws {
        let id = try AppID(named: app)
        let command = self
        try await untilInterrupted {
            try await withDatabase(Self.allowLongReadings) { database in
                let store = TailStore(database, app: id, user: command.user, window: .seconds(60 * command.window))
                try await command.follow(store)
            }
        }
    }

    /// A reading may scan a long window.
    private static func allowLongReadings(_ configuration: inout PostgresConfiguration) {
        configuration.statementTimeout = .seconds(60)
    }

    private func follow(_ store: TailStore) async throws {
        var position = try await store.end()
        OutputOption.remark("following \(app)\(user.map { ", user \($0)" } ?? ""); Ctrl-C ends it")
        let (json, isColored) = (output.json, Terminal.isColored)
        var isAway = false
        while true {
            let begun = ContinuousClock.now
            do {
                position = try await store.rows(after: position) { rows in
                    let lines = rows.map { json ? Self.document($0) : Self.line($0, isColored: isColored) }
                    try OutputOption.write(text: lines.map { "\($0)\n" }.joined())
                }
                if isAway { OutputOption.remark("the database answers again") }
                isAway = false
            } catch let error as PostgresError where error.isOutage && !Task.isCancelled {
                if !isAway { OutputOption.remark("waiting for the database: \(error)") }
                isAway = true
            }
            let duration = begun.duration(to: .now)
            try await Task.sleep(for: max(.seconds(interval), duration * 4))
        }
    }

    static func document(_ row: TailRow) -> String {
        // Strings and numbers always encode.
        (try? WireCoding.text(row.json)) ?? "{}"
    }

    /// `2026-03-31T09:12:04.117Z  push  wanted  7  chat-123  chat-message  5b0c4a52-…`: time, answer or disposition,
    /// reason, user, event, rule, notification.
    static func line(_ row: TailRow, isColored: Bool) -> String {
        let (word, note, style): (String, String?, TextTable.Style) =
            switch row.kind {
            case .decision(_, let answer, let until):
                (answer, until.map { "until \(RFC3339.string(from: $0))" }, answer == "drop" ? .yellow : .plain)
            case .outcome(let origin, let device, let disposition):
                (
                    disposition, "\(origin)\(device.map { " \($0.uuidString.lowercased())" } ?? "")",
                    disposition == "accepted" ? .green : .red
                )
            }
        let first = word.padding(toLength: max(12, word.count), withPad: " ", startingAt: 0)
        let rest = [
            row.reason.map { "(\($0))" }, row.user, row.event, row.rule, row.notification.uuidString.lowercased(), note,
        ].compactMap { $0 }.joined(separator: "  ")
        return RFC3339.string(from: row.at) + "  " + (isColored ? TextTable.colored(first, style) : first) + "  "
            + TextTable.printable(rest)
    }
}
