import FoundationEssentials
import Messaging
import Postgres
import PushProtocol
import RuleEngine
import ServiceConnections

/// Deletes the data of erased users, in small steps.
///
/// 1. Records the erasure under ``AdvisoryLock/decisions``. Running decisions have then ended, and later ones ignore
///    the user in events from before the erasure.
/// 2. Deletes digest buckets and their items, so that no new notification follows from them.
/// 3. Deletes notifications with decisions, outcomes, receipts, reports and inbox items.
/// 4. Deletes the recordings that name the user; then settings and presence.
///
/// After a crash the redelivered message continues the erasure. Later events about the user, and the user's own HTTP
/// requests, start from an empty state.
struct ErasureStore: Sendable {
    /// The maximum number of notifications that one transaction deletes.
    static let defaultBatch = 500

    let pool: PostgresPool
    var batch = ErasureStore.defaultBatch

    /// Deletes all stored data of a user.
    ///
    /// - Parameter moment: when the registry erased the user.
    /// - Returns: `false` if this or a later erasure is complete already.
    @discardableResult
    func erase(_ person: PersonKey, at moment: Timestamp, now: Timestamp) async throws -> Bool {
        try await Outage.ofDatabase {
            guard try await recordErasure(person, at: moment) else { return false }
            // A released notification may be gathered, and a closing bucket adds a held one: repeats until both are
            // gone.
            var isMore = true
            while isMore {
                isMore = try await clear("rules.digest", person) + clear("rules.digest_item", person) > 0
                while try await deleteNotifications(of: person) { isMore = true }
            }
            // After the held notifications and buckets: their decisions could record the user until then.
            while try await pool.execute(RecordingRows.delete(RecordingRows.naming(person))) > 0 {}
            try await deleteCommandOutcomes(of: person)
            for table: SQL in [
                "rules.told", "rules.presence", "rules.badge", "rules.preference_change", "rules.revocation",
                "rules.done_by", "rules.clear_command", "rules.inbox_removal", "rules.replacement",
                "rules.person",
            ] {
                try await clear(table, person)
            }
            try await pool.execute(
                """
                UPDATE rules.erasure SET done_at = \(now.date)
                WHERE person = \(person.digest) AND erased_at = \(moment.date)
                """)
            return true
        }
    }

    private func recordErasure(_ person: PersonKey, at moment: Timestamp) async throws -> Bool {
        try await pool.transaction { transaction in
            try await transaction.execute(AdvisoryLock.decisions.alone)
            let noted = try await transaction.query(
                """
                INSERT INTO rules.erasure AS e (person, erased_at) VALUES (\(person.digest), \(moment.date))
                ON CONFLICT (person) DO UPDATE SET erased_at = EXCLUDED.erased_at, done_at = NULL
                    WHERE e.erased_at < EXCLUDED.erased_at OR e.erased_at = EXCLUDED.erased_at AND e.done_at IS NULL
                RETURNING person
                """)
            guard !noted.isEmpty else { return false }
            // In the same transaction: later events about a group no longer reach the user.
            try await transaction.execute(
                "DELETE FROM rules.member WHERE app = \(person.app.rawValue) AND user_id = \(person.user.rawValue)")
            return true
        }
    }

    @discardableResult
    private func clear(_ table: SQL, _ person: PersonKey) async throws -> Int {
        try await pool.execute(
            "DELETE FROM \(table) WHERE app = \(person.app.rawValue) AND user_id = \(person.user.rawValue)")
    }

    /// Deletes one batch of the user's notifications, with all rows that refer to them.
    ///
    /// - Returns: whether there was any notification.
    private func deleteNotifications(of person: PersonKey) async throws -> Bool {
        try await pool.transaction { transaction in
            // Excludes concurrent outcomes, and erasures that share rendered notifications.
            try await transaction.execute(AdvisoryLock.outcomes.alone)
            let notifications = try await transaction.query(ErasureStore.notifications(of: person, limit: batch))
                .column(UUID.self)
            guard !notifications.isEmpty else { return false }
            var renderedIDs: Set<UUID> = []
            for table: SQL in ["rules.held", "rules.inbox"] {
                let rows = try await transaction.query(
                    "DELETE FROM \(table) WHERE notification = ANY(\(notifications)) RETURNING saying")
                for row in rows { renderedIDs.insert(try row.decode(UUID.self, at: 0)) }
            }
            for table: SQL in ["rules.outcome", "rules.receipt", "rules.report", "rules.decision"] {
                try await transaction.execute("DELETE FROM \(table) WHERE notification = ANY(\(notifications))")
            }
            try await transaction.execute(ErasureStore.unusedRenderings(Array(renderedIDs)))
            return true
        }
    }

    /// Deletes the outcomes of clear commands, which have no decision.
    private func deleteCommandOutcomes(of person: PersonKey) async throws {
        try await pool.transaction { transaction in
            try await transaction.execute(AdvisoryLock.outcomes.alone)
            try await transaction.execute(
                """
                WITH gone AS (
                    DELETE FROM rules.shown_copy
                    WHERE app = \(person.app.rawValue) AND user_id = \(person.user.rawValue) RETURNING command
                )
                DELETE FROM rules.outcome WHERE notification IN (SELECT command FROM gone)
                """)
        }
    }

    /// Selects some notifications of a user. A decision has its app by its event, which is stored as long as the
    /// decision. A digest waits in `held` before its first decision. An inbox item may outlive both.
    static func notifications(of person: PersonKey, limit: Int) -> SQL {
        let (app, user) = (person.app.rawValue, person.user.rawValue)
        return """
            (SELECT notification FROM rules.decision JOIN rules.event ON event.key = decision.event
                WHERE decision.user_id = \(user) AND event.app = \(app) LIMIT \(limit))
            UNION
            (SELECT notification FROM rules.inbox WHERE app = \(app) AND user_id = \(user) LIMIT \(limit))
            UNION
            (SELECT notification FROM rules.held WHERE app = \(app) AND user_id = \(user) AND kind = 'summary'
                LIMIT \(limit))
            """
    }

    /// Deletes rendered notifications that no inbox and no held notification uses any more.
    static func unusedRenderings(_ renderedIDs: [UUID]) -> SQL {
        """
        DELETE FROM rules.saying WHERE id = ANY(\(renderedIDs))
            AND NOT EXISTS (SELECT FROM rules.inbox WHERE inbox.saying = saying.id)
            AND NOT EXISTS (SELECT FROM rules.held WHERE held.saying = saying.id)
        """
    }
}

extension PersonKey {
    /// A pseudonym of the user: a UUID derived from app and user id.
    var digest: UUID { DerivedID.uuid5(DerivedID.namespace, ["erased", app.rawValue, user.rawValue]) }
}

/// Advisory locks that are held until the transaction ends. They serialize erasures with decisions and outcomes, and
/// give periodic work to one process.
///
/// A lock is taken in its own statement, so that the next statement sees the changes of the previous holder.
enum AdvisoryLock: Int, Sendable {
    /// Shared by decisions; exclusive for recording an erasure.
    case decisions = 1
    /// Shared by writers of outcomes and receipts; exclusive for deleting notifications.
    case outcomes
    /// Held by the one process that deletes old rows.
    case history
    /// Held by the one process that counts; other processes skip the count.
    case tallies
    /// Held by the one process that keeps channels ready; other processes skip it.
    case channels

    private static let space = 0x4845_4C49

    /// Takes the lock in shared mode.
    var shared: SQL { "SELECT pg_advisory_xact_lock_shared(\(AdvisoryLock.space)::int4, \(rawValue)::int4)" }
    var alone: SQL { "SELECT pg_advisory_xact_lock(\(AdvisoryLock.space)::int4, \(rawValue)::int4)" }
    /// Tries to take the lock without waiting; returns whether the transaction has it.
    var attempt: SQL { "SELECT pg_try_advisory_xact_lock(\(AdvisoryLock.space)::int4, \(rawValue)::int4)" }
}
