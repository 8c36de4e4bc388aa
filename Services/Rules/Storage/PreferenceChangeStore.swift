import FoundationEssentials
import Logging
import Messaging
import Postgres
import PushProtocol
import RuleEngine
import ServiceConnections

/// Users whose preferences changed, and their pushes that may still be in flight.
struct PreferenceChangeStore: Sendable {
    /// The maximum number of users that one call claims.
    static let batch = 100
    /// The maximum number of pushes that one change of preferences revokes, the latest first.
    static let mostPushes = NotificationRevocation.maximumNotifications
    /// How long a decision that read the former settings may take to commit.
    static let patience = Duration.seconds(10)
    /// The pause before a change is looked at again, while such a decision may be running: as long as the change is old,
    /// within these limits.
    static let pause = Duration.milliseconds(500)...Duration.seconds(3)
    /// How long a push can be in flight: the retention of the senders' stream.
    static let reach = StreamName.senderRevocations.retention
    /// A push this young may be in flight to some devices, although others have an outcome.
    static let recent = Duration.seconds(3600)
    /// The time that a process has to publish the changes it claimed.
    static let lease = Duration.seconds(30)

    let pool: PostgresPool
    var logger = Logger.rules

    /// A user, and the pushes that were decided for them.
    struct Change: Sendable {
        var person: PersonKey
        var version: Int
        /// Whether all transactions that began before the change have ended, so that every decided push is known.
        var isComplete: Bool
        var settings = PersonalSettings()
        var pushes: [Push] = []
    }

    /// A decided push that may be in flight.
    struct Push: Sendable {
        var notification: UUID
        var rule: String
        /// The names that mute it, the widest first. Empty for a push without an inbox item.
        var mutes: [String]
    }

    /// Claims the changes that are due, with the pushes decided so far.
    func take(now: Timestamp) async throws -> [Change] {
        try await UserWork.claim(
            from: .preferenceChange, where: "due_at <= clock_timestamp() AND dead_at IS NULL", atMost: Self.batch, pool,
            logger
        ) { which in try await take(which, now: now) }.flatMap { $0 }
    }

    private func take(_ which: SQL, now: Timestamp) async throws -> [Change] {
        try await pool.transaction { transaction in
            let rows = try await transaction.query(Self.claim(which))
            let (read, dead) = try rows.readable({
                Change(person: try PersonRows.key($0), version: try $0.decode(at: 2), isComplete: try $0.decode(at: 3))
            }) { DeadRow(.preferenceChange, ofPerson: try DeadRow.personKey(of: $0), .unreadable) }
            var changes = read
            try await transaction.markDead(dead, logger)
            guard !changes.isEmpty else { return [] }
            let people = try await transaction.people(
                settingsOf: changes.map(\.person), capsOf: [], presenceOf: [], now: now, logger)
            for row in try await transaction.query(Self.pushes(of: changes.map(\.person))) {
                let index: Int = try row.decode(at: 0)
                changes[index].pushes.append(
                    Push(
                        notification: try row.decode(at: 1), rule: try row.decode(at: 2),
                        mutes: try row.decode([String]?.self, at: 3) ?? []))
            }
            for index in changes.indices {
                changes[index].settings = people[changes[index].person]?.settings ?? PersonalSettings()
            }
            return changes
        }
    }

    /// Marks a change as dead whose revocation no message can carry.
    func markDead(_ change: Change) async throws {
        try await Outage.ofDatabase {
            try await pool.markDead([DeadRow(.preferenceChange, of: change.person, .unsendable)], logger)
        }
    }

    /// Makes changes due again whose pushes are not all known.
    func postpone(_ changes: [Change]) async throws {
        guard !changes.isEmpty else { return }
        try await Outage.ofDatabase {
            try await pool.execute(
                """
                UPDATE rules.preference_change SET due_at = clock_timestamp() + least(
                    greatest(clock_timestamp() - changed_at, \(Self.pause.lowerBound)),
                    \(Self.pause.upperBound))
                FROM \(Self.rows(changes)) WHERE \(Self.isDone)
                """)
        }
    }

    /// Deletes the rows of users without a later change.
    func forget(_ changes: [Change]) async throws {
        try await settlingRows(
            changes, pool, logger, dead: { DeadRow(.preferenceChange, of: $0.person, .failed) }
        ) { done in
            "DELETE FROM rules.preference_change USING \(Self.rows(done)) WHERE \(Self.isDone)"
        }
    }

    private static func rows(_ changes: [Change]) -> SQL { UserWork.done(changes.map { ($0.person, $0.version) }) }

    private static let isDone: SQL = """
        (preference_change.app, preference_change.user_id, preference_change.version)
            = (done.app, done.user_id, done.version)
        """

    /// Records that a user changed their preferences in this transaction.
    static func note(_ person: PersonKey) -> SQL {
        """
        INSERT INTO rules.preference_change (app, user_id) VALUES (\(person.app.rawValue), \(person.user.rawValue))
        ON CONFLICT (app, user_id) DO UPDATE SET version = EXCLUDED.version, changed_by = EXCLUDED.changed_by,
            changed_at = EXCLUDED.changed_at, due_at = EXCLUDED.due_at, dead_at = NULL, dead_reason = NULL
        """
    }

    private static func claim(_ which: SQL) -> SQL {
        """
        UPDATE rules.preference_change SET due_at = clock_timestamp() + \(interval(lease))
        WHERE (app, user_id) IN (
            SELECT app, user_id FROM rules.preference_change \(which) FOR UPDATE SKIP LOCKED)
        RETURNING app, user_id, version, changed_by < pg_snapshot_xmin(pg_current_snapshot())
            OR changed_at < clock_timestamp() - \(interval(patience))
        """
    }

    private static func pushes(of people: [PersonKey]) -> SQL {
        """
        SELECT person.index, push.notification, push.rule, push.mutes FROM unnest(
            \(Array(people.indices)), \(people.map(\.app.rawValue)), \(people.map(\.user.rawValue))
        ) AS person (index, app, user_id)
        CROSS JOIN LATERAL (
            SELECT decision.notification, decision.rule, saying.mutes FROM rules.decision
            JOIN rules.event ON event.key = decision.event AND event.app = person.app
            LEFT JOIN rules.inbox ON inbox.notification = decision.notification
            LEFT JOIN rules.saying ON saying.id = inbox.saying
            WHERE decision.user_id = person.user_id AND decision.answer LIKE 'push%'
                AND decision.reason NOT IN ('noiseless', 'critical', 'surface-ended')
                AND decision.decided_at > clock_timestamp() - \(interval(reach))
                AND (decision.decided_at > clock_timestamp() - \(interval(recent))
                    OR NOT EXISTS (SELECT FROM rules.outcome WHERE outcome.notification = decision.notification))
            ORDER BY decision.decided_at DESC LIMIT \(mostPushes)
        ) AS push
        """
    }

    private static func interval(_ duration: Duration) -> SQL {
        "make_interval(secs => \(Int(duration.components.seconds)))"
    }
}
