import FoundationEssentials
import Logging
import Messaging
import Postgres
import PushProtocol
import RuleEngine
import ServiceConnections

/// Pending badge corrections, one row per user.
struct BadgeStore: Sendable {
    /// The maximum number of corrections that one call claims.
    static let batch = 500
    /// The time that a process has to publish the corrections it claimed.
    static let lease = Duration.seconds(30)

    let pool: PostgresPool
    var logger = Logger.rules

    struct Correction: Hashable, Sendable {
        var person: PersonKey
        var version: Int
        var unread: Int
    }

    /// Claims the due corrections, including those whose lease has ended.
    func take(now: Timestamp) async throws -> [Correction] {
        try await UserWork.claim(
            from: .badge, where: "due_at <= \(now.date) AND dead_at IS NULL", atMost: Self.batch, pool, logger
        ) { which in try await take(which, now: now) }.flatMap { $0 }
    }

    private func take(_ which: SQL, now: Timestamp) async throws -> [Correction] {
        try await pool.transaction { transaction in
            let rows = try await transaction.query(
                """
                UPDATE rules.badge SET due_at = \((now + Self.lease).date)
                WHERE (app, user_id) IN (SELECT app, user_id FROM rules.badge \(which) FOR UPDATE SKIP LOCKED)
                RETURNING app, user_id, version
                """)
            let (read, dead) = try rows.readable({
                Correction(person: try PersonRows.key($0), version: try $0.decode(Int.self, at: 2), unread: 0)
            }) { DeadRow(.badge, ofPerson: try DeadRow.personKey(of: $0), .unreadable) }
            var corrections = read
            try await transaction.markDead(dead, logger)
            // Counts after the versions are read: a read in between causes one more correction.
            let unread = try await transaction.unread(Set(corrections.map(\.person)))
            for index in corrections.indices { corrections[index].unread = unread[corrections[index].person] ?? 0 }
            return corrections
        }
    }

    /// Marks corrections as dead that no message can carry.
    func markDead(_ corrections: [Correction]) async throws {
        try await Outage.ofDatabase {
            try await pool.markDead(corrections.map { DeadRow(.badge, of: $0.person, .unsendable) }, logger)
        }
    }

    /// Deletes published corrections, except of users with a later read.
    func forget(_ corrections: [Correction]) async throws {
        try await settlingRows(corrections, pool, logger, dead: { DeadRow(.badge, of: $0.person, .failed) }) { done in
            """
            DELETE FROM rules.badge USING \(UserWork.done(done.map { ($0.person, $0.version) }))
            WHERE (badge.app, badge.user_id, badge.version) = (done.app, done.user_id, done.version)
            """
        }
    }

    /// A statement part that schedules a correction for the users in the common table expression `changed`.
    static func note(now: Timestamp) -> SQL { note(due: "\((now + BadgeCorrection.pause).date)") }

    /// The same after the deletion of old unread items. A correction is due 12 to 24 hours later, at an offset that
    /// follows from the user's id, so that a mass deletion causes no burst of pushes.
    static func noteLater(now: Timestamp) -> SQL {
        let share: SQL = "('x' || left(md5(user_id), 4))::bit(16)::integer / 65536.0"
        return note(due: "\(now.date) + interval '12 hours' * (1 + \(share))")
    }

    /// Sorted by user, so that two statements about the same users wait for each other and do not deadlock.
    private static func note(due: SQL) -> SQL {
        """
        INSERT INTO rules.badge (app, user_id, due_at)
        SELECT DISTINCT app, user_id, \(due) AS due_at FROM changed ORDER BY app, user_id
        ON CONFLICT (app, user_id) DO UPDATE
        SET version = EXCLUDED.version, due_at = least(badge.due_at, EXCLUDED.due_at), dead_at = NULL, dead_reason = NULL
        """
    }
}
