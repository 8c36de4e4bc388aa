import FoundationEssentials
import Messaging
import Postgres
import PushProtocol
import ServiceConnections
import ServiceKit

/// Forgets people at their word, in small steps.
///
/// First it is written down that they are forgotten (``AdvisoryLock/decisions``): from then on no event that happened before is
/// about them, wherever it is under way, and whatever was being decided has ended. Then what waits is deleted, so that
/// nothing new comes of it, and then what was decided, with all that hangs on it. Whoever dies in between is followed by
/// the message's next delivery. The person's own requests over HTTP, and later events about them, begin anew.
struct ErasureStore: Sendable {
    /// The most notifications that one transaction forgets.
    static let usualBatch = 500

    let pool: PostgresPool
    var batch = ErasureStore.usualBatch

    /// Forgets a person, of whom everything is deleted that is known here now.
    ///
    /// - Parameter moment: when the registry forgot them.
    /// - Returns: whether there was something to do: not where this, or a later word, has been carried out.
    @discardableResult
    func erase(_ person: PersonKey, at moment: Timestamp, now: Timestamp) async throws -> Bool {
        try await Outage.ofDatabase {
            guard try await noteDown(person, at: moment) else { return false }
            // What is let go may be gathered, and what is gathered is let go: until there is neither.
            var isMore = true
            while isMore {
                isMore = try await clear("rules.digest", person) + clear("rules.digest_item", person) > 0
                while try await forgetNotifications(of: person) { isMore = true }
            }
            for table: SQL in [
                "rules.told", "rules.presence", "rules.badge", "rules.preference_change", "rules.person",
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

    private func noteDown(_ person: PersonKey, at moment: Timestamp) async throws -> Bool {
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
            // Now: what happens next to a group is not for them.
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

    /// One batch of the person's notifications, with all that hangs on them.
    ///
    /// - Returns: whether there was any.
    private func forgetNotifications(of person: PersonKey) async throws -> Bool {
        try await pool.transaction { transaction in
            // No outcome comes in between, nor another erasure that refers to the same sayings.
            try await transaction.execute(AdvisoryLock.outcomes.alone)
            var notifications: [UUID] = []
            for row in try await transaction.query(ErasureStore.notifications(of: person, limit: batch)) {
                notifications.append(try row.decode(UUID.self, at: 0))
            }
            guard !notifications.isEmpty else { return false }
            var sayings: Set<UUID> = []
            for table: SQL in ["rules.held", "rules.inbox"] {
                let rows = try await transaction.query(
                    "DELETE FROM \(table) WHERE notification = ANY(\(notifications)) RETURNING saying")
                for row in rows { sayings.insert(try row.decode(UUID.self, at: 0)) }
            }
            for table: SQL in ["rules.outcome", "rules.receipt", "rules.report", "rules.decision"] {
                try await transaction.execute("DELETE FROM \(table) WHERE notification = ANY(\(notifications))")
            }
            try await transaction.execute(ErasureStore.unsaid(Array(sayings)))
            return true
        }
    }

    /// Some of a person's notifications. What was decided has its app by its event, which is kept for as long as the
    /// decision; what is summed up waits before it is decided about; an inbox may outlive both.
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

    /// What was said to nobody else goes too.
    static func unsaid(_ sayings: [UUID]) -> SQL {
        """
        DELETE FROM rules.saying WHERE id = ANY(\(sayings))
            AND NOT EXISTS (SELECT FROM rules.inbox WHERE inbox.saying = saying.id)
            AND NOT EXISTS (SELECT FROM rules.held WHERE held.saying = saying.id)
        """
    }
}

extension PersonKey {
    /// A name that does not say whose it is.
    var digest: UUID { DerivedID.uuid5(DerivedID.namespace, ["erased", app.rawValue, user.rawValue]) }
}

/// What must not happen while somebody is being forgotten waits until they are; and the other way round. Until the
/// transaction ends. Taken in a statement of its own, so that the next one sees what the other has done.
enum AdvisoryLock: Int, Sendable {
    /// Deciding about events, against noting down who is forgotten.
    case decisions = 1
    /// Keeping what became of notifications, against deleting them.
    case outcomes
    /// Deleting what is old is one process's affair at a time.
    case history
    /// Counting is; whoever comes second leaves it to the first.
    case tallies

    private static let space = 0x4845_4C49

    /// Beside others of its kind.
    var shared: SQL { "SELECT pg_advisory_xact_lock_shared(\(AdvisoryLock.space)::int4, \(rawValue)::int4)" }
    var alone: SQL { "SELECT pg_advisory_xact_lock(\(AdvisoryLock.space)::int4, \(rawValue)::int4)" }
    /// Without waiting: answers whether it is the transaction's.
    var attempt: SQL { "SELECT pg_try_advisory_xact_lock(\(AdvisoryLock.space)::int4, \(rawValue)::int4)" }
}
