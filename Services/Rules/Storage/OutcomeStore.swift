import FoundationEssentials
import Messaging
import Postgres
import PushProtocol
import ServiceConnections

struct OutcomeStore: Sendable {
    let pool: PostgresPool

    /// Stores a batch of outcomes, and schedules the delivery reports of their notifications. Ignores known outcomes,
    /// and outcomes of notifications without a decision: those of campaigns, badge corrections and erased users. Outcomes
    /// of clear commands are stored. An outcome whose sender has a clock ahead gets the time of its arrival.
    ///
    /// The acceptance of a revoked push makes a clear command due: the sender had it before the revocation.
    ///
    /// - Parameter now: by the database's clock.
    func keep(_ messages: [Outcomes], now: Timestamp) async throws {
        let rows = messages.flatMap { message in message.outcomes.map { (origin: message.origin, outcome: $0) } }
        guard !rows.isEmpty else { return }
        // Postgres text cannot contain NUL.
        let reasons = rows.map { $0.outcome.answer.reason?.replacing("\0", with: "") }
        try await Outage.ofDatabase {
            try await pool.transaction { transaction in
                try await transaction.execute(AdvisoryLock.outcomes.shared)
                try await transaction.execute(
                    """
                    WITH news AS (
                        UPDATE rules.report SET due_at = \(now.date)
                        WHERE notification = ANY(\(Array(Set(rows.map(\.outcome.notification)))))
                    ), stored AS (
                        INSERT INTO rules.outcome (notification, device, disposition, origin, reason, at)
                        SELECT * FROM unnest(
                            \(rows.map(\.outcome.notification)), \(rows.map(\.outcome.device)),
                            \(rows.map(\.outcome.answer.disposition.rawValue)), \(rows.map(\.origin.rawValue)),
                            \(reasons), \(rows.map { min($0.outcome.at, now).date })
                        ) AS new (notification, device, disposition)
                        WHERE EXISTS (
                            SELECT FROM rules.decision WHERE decision.notification = new.notification
                            UNION ALL SELECT FROM rules.shown_copy WHERE shown_copy.command = new.notification)
                        ORDER BY notification, device, disposition
                        ON CONFLICT DO NOTHING
                        RETURNING notification, disposition
                    ), shown AS (\(ShownCopyRows.accept))
                    \(ClearCommandStore.note(now: now))
                    """)
            }
        }
    }
}
