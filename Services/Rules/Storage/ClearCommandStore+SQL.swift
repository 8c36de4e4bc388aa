import FoundationEssentials
import Postgres
import PushProtocol
import RuleEngine

extension ClearCommandStore {
    static let isDone: SQL = "(clear_command.app, clear_command.user_id) = (done.app, done.user_id)"

    static func rows(_ commands: [Command]) -> SQL { UserWork.done(commands.map { ($0.person, $0.version) }) }

    /// Selects the copies of these users that a command may name: unsent ones, the oldest first, then sent ones, the
    /// latest first. A copy with a collapse key is left out if a later notification in the inbox has that key, because
    /// the phone shows the later one.
    static func copies(of people: [PersonKey], now: Timestamp) -> SQL {
        """
        SELECT person.index, copy.notification, copy.identifier, copy.sent_at IS NOT NULL
        FROM unnest(
            \(Array(people.indices)), \(people.map(\.app.rawValue)), \(people.map(\.user.rawValue))
        ) AS person (index, app, user_id)
        CROSS JOIN LATERAL (
            SELECT * FROM rules.shown_copy
            WHERE shown_copy.app = person.app AND shown_copy.user_id = person.user_id AND is_accepted
                AND noted_at > \((now - ClearCommand.lifetime).date)
                AND (identifier = notification::text OR NOT EXISTS (
                    SELECT FROM rules.inbox JOIN rules.saying ON saying.id = inbox.saying
                    WHERE inbox.app = person.app AND inbox.user_id = person.user_id
                        AND inbox.at > shown_copy.decided_at
                        AND saying.content ->> 'collapseKey' = shown_copy.identifier))
            ORDER BY sent_at IS NOT NULL, sent_at DESC, noted_at, notification LIMIT \(ClearCommand.maximumCopies)
        ) AS copy
        ORDER BY person.index, copy.sent_at IS NOT NULL, copy.sent_at DESC, copy.noted_at, copy.notification
        """
    }

    static func postpone(_ people: [(PersonKey, Timestamp)]) -> SQL {
        """
        UPDATE rules.clear_command SET due_at = done.due_at
        FROM unnest(
            \(people.map(\.0.app.rawValue)), \(people.map(\.0.user.rawValue)), \(people.map(\.1.date))
        ) AS done (app, user_id, due_at) WHERE \(isDone)
        """
    }

    static func end(_ commands: [Command]) -> SQL {
        "UPDATE rules.clear_command SET due_at = NULL FROM \(rows(commands)) WHERE \(isDone)"
    }

    /// Takes a place in the budget, and forgets places that no longer count.
    static func reserve(_ commands: [Command], now: Timestamp) -> SQL {
        """
        UPDATE rules.clear_command SET sent_at = ARRAY(
            SELECT sent FROM unnest(clear_command.sent_at) AS sent
            WHERE sent > \((now - ClearCommand.period).date)) || \([now.date])
        FROM \(rows(commands)) WHERE \(isDone)
        """
    }

    /// Stores the command of each unsent copy before it is published, so that its outcomes are kept.
    static func name(_ commands: [Command]) -> SQL {
        let copies = commands.flatMap { command in
            command.copies.filter { !$0.isSent }.map { ($0.notification, command.id) }
        }
        return """
            UPDATE rules.shown_copy SET command = done.command
            FROM unnest(\(copies.map(\.0)), \(copies.map(\.1))) AS done (notification, command)
            WHERE shown_copy.notification = done.notification
            """
    }

    /// A statement part that makes a command due for the users in the common table expression `shown`. Sorted by user,
    /// so that two statements about the same users wait for each other and do not deadlock.
    static func note(now: Timestamp) -> SQL {
        """
        INSERT INTO rules.clear_command (app, user_id, due_at, noted_at)
        SELECT DISTINCT app, user_id, \((now + ClearCommand.pause).date)::timestamptz, \(now.date)::timestamptz
        FROM shown ORDER BY app, user_id
        ON CONFLICT (app, user_id) DO UPDATE
        SET version = EXCLUDED.version, due_at = least(clear_command.due_at, EXCLUDED.due_at),
            noted_at = EXCLUDED.noted_at, dead_at = NULL, dead_reason = NULL
        """
    }
}
