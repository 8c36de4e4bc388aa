import FoundationEssentials
import Logging
import Messaging
import Postgres
import PushProtocol
import ServiceConnections

/// Delivery reports, for rules that ask for them.
struct ReportStore: Sendable {
    static let batch = 500
    /// The time that a process has to publish the reports it claimed.
    static let lease = Duration.seconds(30)

    let pool: PostgresPool
    var logger = Logger.rules

    /// Claims the reports that are due. Any number of processes may run it; each report goes to one process. A row that
    /// cannot be read or processed is marked as dead (``DeadRow``) and does not block the others.
    func take(now: Timestamp) async throws -> [DeliveryReport] {
        let isDue: SQL = "due_at <= \(now.date) AND dead_at IS NULL"
        let due: SQL = "WHERE \(isDue) ORDER BY due_at LIMIT \(ReportStore.batch)"
        return try await Outage.ofDatabase {
            try await isolatingRows(
                pool, logger, batch: { try await take(due, now: now) },
                keys: { try await pool.query("SELECT notification FROM rules.report \(due)").column(UUID.self) },
                alone: { try await take("WHERE \(isDue) AND notification = \($0)", now: now) },
                dead: { ReportStore.dead($0, of: nil, .failed) })
        }.flatMap { $0 }
    }

    private func take(_ which: SQL, now: Timestamp) async throws -> [DeliveryReport] {
        let rows = try await pool.query(
            """
            WITH due AS (
                SELECT notification FROM rules.report \(which) FOR UPDATE SKIP LOCKED
            ), lent AS (
                UPDATE rules.report SET due_at = \((now + ReportStore.lease).date) FROM due
                WHERE report.notification = due.notification RETURNING report.*
            )
            SELECT lent.notification, app, user_id, rule, correlation, lent.due_at,
                coalesce(delivery.push_sent, false), coalesce(delivery.devices, 0), coalesce(delivery.is_failed, false)
            FROM lent LEFT JOIN rules.delivery ON delivery.notification = lent.notification
            """)
        let (reports, dead) = try rows.readable({ try DeliveryReport($0) }) { row in
            ReportStore.dead(try row.decode(UUID.self, at: 0), of: try row.decode(String.self, at: 1), .unreadable)
        }
        try await pool.markDead(dead, logger)
        return reports
    }

    private static func dead(_ notification: UUID, of app: String?, _ reason: DeadRow.Reason) -> DeadRow {
        DeadRow(table: .report, app: app, key: [notification.uuidString.lowercased()], reason: reason)
    }

    /// Marks a report as dead that no message can carry.
    func markDead(_ report: DeliveryReport) async throws {
        try await Outage.ofDatabase {
            try await pool.markDead(
                [ReportStore.dead(report.notification, of: report.app.rawValue, .unsendable)], logger)
        }
    }

    /// Marks reports as published. A report with a later outcome stays due.
    func told(_ reports: [DeliveryReport]) async throws {
        try await settlingRows(
            reports, pool, logger, dead: { ReportStore.dead($0.notification, of: $0.app.rawValue, .failed) }
        ) { reports in
            """
            UPDATE rules.report SET due_at = NULL FROM unnest(
                \(reports.map(\.notification)), \(reports.map(\.dueAt.date))
            ) AS new (notification, due_at)
            WHERE report.notification = new.notification AND report.due_at = new.due_at
            """
        }
    }
}

extension DeliveryReport {
    /// - Parameter row: of ``ReportStore/take(now:)``.
    fileprivate init(_ row: PostgresRow) throws(PostgresError) {
        self.init(
            notification: try row.decode(UUID.self, at: 0), app: try row.decode(AppID.self, at: 1),
            user: try row.decode(UserID.self, at: 2), rule: try row.decode(String.self, at: 3),
            event: try row.decode(String.self, at: 4), dueAt: Timestamp(try row.decode(Date.self, at: 5)),
            isPushSent: try row.decode(Bool.self, at: 6), devices: try row.decode(Int.self, at: 7),
            isFailed: try row.decode(Bool.self, at: 8))
    }
}
