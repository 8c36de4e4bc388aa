import FoundationEssentials
import Logging
import Messaging
import Postgres
import PushProtocol
import RuleEngine
import ServiceConnections

/// Users whose phones show copies of revoked notifications, and their clear commands (``ClearCommand``).
struct ClearCommandStore: Sendable {
    /// The maximum number of users that one call claims.
    static let batch = 500
    /// The time that a process has to publish the commands it claimed.
    static let lease = Duration.seconds(30)

    let pool: PostgresPool
    var logger = Logger.rules

    /// A command that may be sent now. Its place in the budget is taken.
    struct Command: Hashable, Sendable {
        var person: PersonKey
        var version: Int
        var copies: [ClearCommand.Copy]
        var takenAt: Timestamp

        var id: UUID { ClearCommand.id(of: person, version: version) }
        var hasUnsentCopy: Bool { !copies.allSatisfy(\.isSent) }
    }

    /// Claims the due commands, at most ``batch``. A user over the budget becomes due when the budget allows a command.
    ///
    /// - Returns: the commands to publish, and whether more users may be due.
    func take(now: Timestamp) async throws -> (commands: [Command], isMore: Bool) {
        let taken = try await UserWork.claim(
            from: .clearCommand, where: "due_at <= \(now.date) AND dead_at IS NULL", atMost: Self.batch, pool, logger
        ) { which in try await take(which, now: now) }
        return (taken.flatMap(\.commands), taken.reduce(0) { $0 + $1.claimed } == Self.batch)
    }

    private func take(_ which: SQL, now: Timestamp) async throws -> (commands: [Command], claimed: Int) {
        try await pool.transaction { transaction in
            let rows = try await transaction.query(
                """
                UPDATE rules.clear_command SET due_at = \((now + Self.lease).date)
                WHERE (app, user_id) IN (SELECT app, user_id FROM rules.clear_command \(which) FOR UPDATE SKIP LOCKED)
                RETURNING app, user_id, version, sent_at
                """)
            let (read, dead) = try rows.readable({ row in
                let sent = try row.decode([Date].self, at: 3).map(Timestamp.init)
                let command = Command(
                    person: try PersonRows.key(row), version: try row.decode(at: 2), copies: [], takenAt: now)
                return (command: command, next: ClearCommand.next(after: sent, now: now))
            }) { DeadRow(.clearCommand, ofPerson: try DeadRow.personKey(of: $0), .unreadable) }
            try await transaction.markDead(dead, logger)
            let waiting = read.compactMap { row in row.next.map { (row.command.person, $0) } }
            if !waiting.isEmpty { try await transaction.execute(Self.postpone(waiting)) }
            var commands = read.filter { $0.next == nil }.map(\.command)
            guard !commands.isEmpty else { return ([], rows.count) }
            for row in try await transaction.query(Self.copies(of: commands.map(\.person), now: now)) {
                commands[try row.decode(Int.self, at: 0)].copies.append(
                    ClearCommand.Copy(
                        notification: try row.decode(at: 1), identifier: try row.decode(at: 2),
                        isSent: try row.decode(at: 3)))
            }
            for index in commands.indices {
                commands[index].copies = ClearCommand.chosen(among: commands[index].copies)
            }
            // Without an unsent copy there is nothing to send.
            let idle = commands.filter { !$0.hasUnsentCopy }
            if !idle.isEmpty { try await transaction.execute(Self.end(idle)) }
            commands.removeAll { !$0.hasUnsentCopy }
            if !commands.isEmpty {
                try await transaction.execute(Self.reserve(commands, now: now))
                try await transaction.execute(Self.name(commands))
            }
            return (commands, rows.count)
        }
    }

    /// Records commands that the broker has confirmed. A user with further copies stays due.
    func complete(_ commands: [Command], now: Timestamp) async throws {
        try await settlingRows(
            commands, pool, logger, dead: { DeadRow(.clearCommand, of: $0.person, .failed) }
        ) { done in
            let copies = done.flatMap { command in command.copies.map { ($0.notification, command.id) } }
            return """
                WITH sent AS (
                    UPDATE rules.shown_copy SET sent_at = \(now.date)
                    FROM unnest(\(copies.map(\.0)), \(copies.map(\.1))) AS done (notification, command)
                    WHERE shown_copy.notification = done.notification AND shown_copy.command = done.command
                        AND shown_copy.sent_at IS NULL
                    RETURNING shown_copy.notification
                )
                UPDATE rules.clear_command SET version = DEFAULT, due_at = CASE WHEN EXISTS (
                        SELECT FROM rules.shown_copy
                        WHERE shown_copy.app = clear_command.app AND shown_copy.user_id = clear_command.user_id
                            AND is_accepted AND shown_copy.sent_at IS NULL
                            AND shown_copy.notification NOT IN (SELECT notification FROM sent)
                    ) OR clear_command.version <> done.version THEN \((now + ClearCommand.pause).date) END
                FROM \(Self.rows(done)) WHERE \(Self.isDone)
                """
        }
    }

    /// Returns the places in the budget of commands that the broker did not confirm, and repeats them after a second.
    func postpone(_ commands: [Command], now: Timestamp) async throws {
        try await settlingRows(
            commands, pool, logger, dead: { DeadRow(.clearCommand, of: $0.person, .failed) }
        ) { failed in
            """
            UPDATE rules.clear_command SET sent_at = array_remove(sent_at, \(failed[0].takenAt.date)),
                due_at = \((now + ClearCommand.pause).date)
            FROM \(Self.rows(failed)) WHERE \(Self.isDone)
            """
        }
    }

    /// Marks commands as dead that no message can carry.
    func markDead(_ commands: [Command]) async throws {
        try await Outage.ofDatabase {
            try await pool.markDead(commands.map { DeadRow(.clearCommand, of: $0.person, .unsendable) }, logger)
        }
    }
}
