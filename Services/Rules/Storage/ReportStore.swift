import FoundationEssentials
import Messaging
import Postgres
import PushProtocol
import ServiceKit

/// What became of notifications, for the upstreams that want to know.
struct ReportStore: Sendable {
    static let batch = 500
    /// How long one process has to publish what it took.
    static let lease = Duration.seconds(30)

    let pool: PostgresPool

    /// Takes what there is news of. Any number of processes may do this: none gets what another has.
    func take(now: Timestamp) async throws -> [DeliveryReport] {
        try await Outage.ofDatabase {
            var reports: [DeliveryReport] = []
            let rows = try await pool.query(
                """
                WITH due AS (
                    SELECT notification FROM rules.report WHERE due_at <= \(now.date)
                    ORDER BY due_at LIMIT \(ReportStore.batch) FOR UPDATE SKIP LOCKED
                ), lent AS (
                    UPDATE rules.report SET due_at = \((now + ReportStore.lease).date) FROM due
                    WHERE report.notification = due.notification RETURNING report.*
                )
                SELECT lent.notification, app, user_id, rule, correlation, lent.due_at,
                    coalesce(delivery.push_sent, false), coalesce(delivery.devices, 0), coalesce(delivery.is_failed, false)
                FROM lent LEFT JOIN rules.delivery ON delivery.notification = lent.notification
                """)
            for row in rows {
                reports.append(
                    DeliveryReport(
                        notification: try row.decode(UUID.self, at: 0), app: try row.decode(AppID.self, at: 1),
                        user: try row.decode(UserID.self, at: 2), rule: try row.decode(String.self, at: 3),
                        event: try row.decode(String.self, at: 4), dueAt: Timestamp(try row.decode(Date.self, at: 5)),
                        isPushSent: try row.decode(Bool.self, at: 6), devices: try row.decode(Int.self, at: 7),
                        isFailed: try row.decode(Bool.self, at: 8)))
            }
            return reports
        }
    }

    /// Notes what was told; what there is news of since is told again.
    func told(_ reports: [DeliveryReport]) async throws {
        guard !reports.isEmpty else { return }
        try await Outage.ofDatabase {
            try await pool.execute(
                """
                UPDATE rules.report SET due_at = NULL FROM unnest(
                    \(reports.map(\.notification)), \(reports.map(\.dueAt.date))
                ) AS new (notification, due_at)
                WHERE report.notification = new.notification AND report.due_at = new.due_at
                """)
        }
    }
}
