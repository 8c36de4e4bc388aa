import FoundationEssentials
import Postgres
import PushProtocol

/// Receipts: users opened or dismissed notifications.
struct ReceiptStore: Sendable {
    let pool: PostgresPool

    /// Stores receipts, each once and only for the user's own notifications. Marks opened notifications as read.
    func keep(_ receipts: [ReceiptsBody.Receipt], of person: PersonKey, now: Timestamp) async throws {
        let (app, user) = (person.app.rawValue, person.user.rawValue)
        let opened = receipts.filter { $0.what == .opened }.map(\.notification)
        try await pool.transaction { transaction in
            try await transaction.execute(AdvisoryLock.outcomes.shared)
            try await transaction.execute(
                """
                INSERT INTO rules.receipt (notification, what, at)
                SELECT DISTINCT new.notification, new.what, \(now.date)
                FROM unnest(\(receipts.map(\.notification)), \(receipts.map(\.what.rawValue))) AS new (notification, what)
                WHERE EXISTS (
                    SELECT FROM rules.decision JOIN rules.event ON event.key = decision.event
                    WHERE decision.notification = new.notification AND decision.user_id = \(user) AND event.app = \(app)
                ) OR EXISTS (
                    SELECT FROM rules.inbox
                    WHERE inbox.notification = new.notification AND inbox.user_id = \(user) AND inbox.app = \(app))
                ORDER BY 1, 2
                ON CONFLICT DO NOTHING
                """)
            guard !opened.isEmpty else { return }
            _ = try await transaction.query(InboxStore.mark("AND notification = ANY(\(opened))", person, now: now))
        }
    }
}
