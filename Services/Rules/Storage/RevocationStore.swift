import DecisionLog
import FoundationEssentials
import Logging
import Messaging
import Postgres
import PushProtocol
import ServiceConnections

/// Revocations that are not carried out yet, and the notifications of each, step by step.
struct RevocationStore: Sendable {
    /// The maximum number of revocations that one call claims.
    static let batch = 20
    /// The maximum number of notifications in one step.
    static let defaultStep = 5000
    /// The time that a process has for each step.
    static let lease = Duration.seconds(30)

    let pool: PostgresPool
    var step = RevocationStore.defaultStep
    var logger = Logger.rules

    /// A claimed revocation.
    struct Work: Sendable {
        var revocation: Revocation
        var app: AppID
        /// The last notification that is done.
        var position: UUID?
    }

    /// The notifications of one step. Nothing of them is held or gathered any more.
    struct Step: Sendable {
        var notifications: [UUID] = []
        /// The notifications that a sender may still have.
        var pushes: [UUID] = []
        /// The campaigns among them, which the registry cancels.
        var campaigns: [UUID] = []
        /// The number of ``pushes`` that no provider has accepted.
        var unsent = 0
        var isLast = false
    }

    /// Claims revocations, those of operators first. A row that cannot be read or claimed is marked as dead
    /// (``DeadRow``) and does not block the others.
    func take() async throws -> [Work] {
        let due: SQL = "WHERE \(Self.isDue) ORDER BY source = 'rule', due_at LIMIT \(Self.batch)"
        let taken = try await Outage.ofDatabase {
            try await isolatingRows(
                pool, logger, batch: { try await take(due) },
                keys: { try await pool.query("SELECT id FROM rules.revocation \(due)").column(UUID.self) },
                alone: { try await take("WHERE \(Self.isDue) AND id = \($0)") },
                dead: { Self.dead($0, of: nil, .failed) })
        }
        func isOfRule(_ work: Work) -> Bool { work.revocation.source == .rule }
        return taken.flatMap { $0 }.sorted { !isOfRule($0) && isOfRule($1) }
    }

    private func take(_ which: SQL) async throws -> [Work] {
        try await pool.transaction { transaction in
            let (works, dead) = try await transaction.query(Self.claim(which)).readable({ row in
                Work(
                    revocation: try Revocation(row: row), app: try row.decode(at: 1), position: try row.decode(at: 19))
            }) { row in Self.dead(try row.decode(at: 0), of: try row.decode(at: 1), .unreadable) }
            try await transaction.markDead(dead, logger)
            return works
        }
    }

    /// Waits for the decisions that began before the revocation was stored, and makes its fan-outs due. A fan-out reads
    /// the revocation at its next step, and ends if it is for all users.
    func begin(_ work: Work, now: Timestamp) async throws {
        let revocation = work.revocation
        try await Outage.ofDatabase {
            if case .event = revocation.target {
                try await pool.transaction { try await $0.execute(AdvisoryLock.decisions.alone) }
            }
            try await pool.transaction { transaction in
                // Waits for running steps, which may have read no revocation.
                let fanOuts = try await transaction.query(Self.lockFanOuts(of: revocation))
                guard revocation.user == nil, !fanOuts.isEmpty else { return }
                try await transaction.execute(Self.hurry(revocation, now: now))
                try await transaction.execute(
                    """
                    UPDATE rules.revocation SET fan_outs = greatest(fan_outs, \(fanOuts.count))
                    WHERE id = \(revocation.id)
                    """)
            }
        }
    }

    /// Withdraws the held and gathered notifications of the next step, in one transaction. Each gets the decision
    /// `drop`, `revoked`.
    func advance(_ work: Work, now: Timestamp) async throws -> Step {
        let revocation = work.revocation
        return try await Outage.ofDatabase {
            try await pool.transaction { transaction in
                // An erasure that runs deletes the decisions first; a later one deletes the noted copies.
                try await transaction.execute(AdvisoryLock.outcomes.shared)
                var next = Step()
                next.notifications = try await transaction.query(
                    RevocationSelection.notifications(
                        of: revocation.target, app: revocation.app, user: revocation.user, after: work.position,
                        limit: step)
                ).column(UUID.self)
                next.isLast = next.notifications.count < step
                guard !next.notifications.isEmpty else { return next }
                let held = try await transaction.query(Self.withdraw(next.notifications, now: now)).single(Int.self)
                // A digest that is being closed keeps its entries.
                _ = try await transaction.query(Self.lockDigests(of: next.notifications))
                let gathered = try await transaction.query(Self.remove(next.notifications, now: now)).single(Int.self)
                try await transaction.execute(ShownCopyRows.note(next.notifications, now: now))
                let ids: SQL = "SELECT unnest(\(next.notifications)) AS notification"
                for row in try await transaction.query(RevocationSelection.pushes(among: ids)) {
                    next.pushes.append(try row.decode(at: 0))
                    next.unsent += try row.decode(Bool.self, at: 1) ? 0 : 1
                }
                next.campaigns = try await transaction.query(RevocationSelection.campaigns(among: ids)).column(
                    UUID.self)
                try await transaction.execute(
                    """
                    UPDATE rules.revocation SET held = held + \(held), gathered = gathered + \(gathered),
                        due_at = clock_timestamp() + \(Self.lease)
                    WHERE id = \(revocation.id) AND ended_at IS NULL
                    """)
                return next
            }
        }
    }

    /// Completes a step whose revocations the broker has confirmed: makes clear commands due for copies that phones show,
    /// removes the inbox items, unless they are kept, and schedules badge corrections.
    func complete(_ step: Step, of work: Work, now: Timestamp) async throws {
        guard let last = step.notifications.last else { return }
        let (id, keepsInbox) = (work.revocation.id, work.revocation.inbox == .keep)
        try await Outage.ofDatabase {
            // Later outcomes see the noted copies, and this transaction sees the earlier outcomes.
            try await pool.transaction { try await $0.execute(AdvisoryLock.outcomes.alone) }
            try await pool.transaction { transaction in
                let shown = try await transaction.query(ShownCopyRows.clearAccepted(step.notifications, now: now))
                    .single(Int.self)
                var items = 0
                if !keepsInbox {
                    let those: SQL = "notification = ANY(\(step.notifications))"
                    items = try await transaction.query(InboxStore.remove(those, now: now)).single()
                }
                try await transaction.execute(
                    """
                    UPDATE rules.revocation SET pushes = pushes + \(step.unsent), shown = shown + \(shown),
                        inbox_items = inbox_items + \(items), position = \(last),
                        due_at = clock_timestamp() + \(Self.lease)
                    WHERE id = \(id) AND ended_at IS NULL AND (position IS NULL OR position < \(last))
                    """)
            }
        }
    }

    /// Marks a revocation as carried out.
    ///
    /// - Returns: its final state; `nil` if another process has ended it.
    func end(_ work: Work) async throws -> Revocation? {
        try await Outage.ofDatabase {
            try await pool.query(
                """
                UPDATE rules.revocation SET due_at = NULL, ended_at = clock_timestamp()
                WHERE id = \(work.revocation.id) AND ended_at IS NULL RETURNING \(Revocation.columns)
                """
            ).first.map { row throws(PostgresError) in try Revocation(row: row) }
        }
    }

    /// Makes a claimed revocation due in `delay`, for example because the broker did not confirm.
    func postpone(_ work: Work, by delay: Duration) async throws {
        try await Outage.ofDatabase {
            try await pool.execute(
                """
                UPDATE rules.revocation SET due_at = clock_timestamp() + \(delay)
                WHERE id = \(work.revocation.id) AND ended_at IS NULL
                """)
        }
    }

    func markDead(_ work: Work, _ reason: DeadRow.Reason) async throws {
        try await Outage.ofDatabase {
            try await pool.markDead([Self.dead(work.revocation.id, of: work.app.rawValue, reason)], logger)
        }
    }

    private static func dead(_ id: UUID, of app: String?, _ reason: DeadRow.Reason) -> DeadRow {
        DeadRow(table: .revocation, app: app, key: [id.uuidString.lowercased()], reason: reason)
    }
}
