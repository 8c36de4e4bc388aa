import FoundationEssentials
import Postgres
import PushProtocol
import RuleEngine
import RuleLanguage

/// Receipts: users opened or dismissed notifications.
struct ReceiptStore: Sendable {
    let pool: PostgresPool

    /// Stores receipts, each once and only for the user's own notifications. Marks opened notifications as read.
    ///
    /// - Parameter clearsShown: whether opened and dismissed notifications are removed from the user's other devices.
    func keep(
        _ receipts: [ReceiptsBody.Receipt], of person: PersonKey, clearsShown: Bool = false, now: Timestamp
    ) async throws {
        let opened = receipts.filter { $0.what == .opened }.map(\.notification)
        let dismissed = receipts.filter { $0.what == .dismissed }.map(\.notification)
        try await pool.transaction { transaction in
            try await transaction.execute(AdvisoryLock.outcomes.shared)
            try await transaction.execute(
                """
                INSERT INTO rules.receipt (notification, what, at)
                SELECT DISTINCT new.notification, new.what, \(now.date)
                FROM unnest(\(receipts.map(\.notification)), \(receipts.map(\.what.rawValue))) AS new (notification, what)
                WHERE \(Self.isOwn(person)) ORDER BY 1, 2
                ON CONFLICT DO NOTHING
                """)
            if clearsShown, !dismissed.isEmpty {
                _ = try await transaction.query(ShownCopyRows.clear(dismissed, of: person, now: now))
            }
            guard !opened.isEmpty else { return }
            _ = try await transaction.query(
                InboxStore.mark(
                    "AND notification = ANY(\(opened))", person, clearsShown: clearsShown, now: now))
        }
    }

    /// Completes the items of notifications whose receipts do so by the app's rules, for this user. Pending notifications
    /// about them are withdrawn.
    ///
    /// - Parameter receipts: stored receipts (``keep(_:of:now:)``).
    func finishItems(
        _ receipts: [ReceiptsBody.Receipt], of person: PersonKey, by ruleSet: RuleSet, now: Timestamp
    ) async throws {
        guard !ruleSet.doneByReceipts.isEmpty else { return }
        let rows = try await pool.query(
            """
            SELECT event_item.item, receipt.what, receipt.at, decision.rule
            FROM unnest(\(receipts.map(\.notification)), \(receipts.map(\.what.rawValue))) AS new (notification, what)
            JOIN rules.receipt ON receipt.notification = new.notification AND receipt.what = new.what
            JOIN rules.decision ON decision.notification = new.notification AND decision.step = 0
                AND decision.user_id = \(person.user.rawValue)
            JOIN rules.event_item ON (event_item.event, event_item.rule) = (decision.event, decision.rule)
                AND event_item.app = \(person.app.rawValue) AND NOT event_item.starts_surface
            """)
        var done: [ItemKey: Timestamp] = [:]
        for row in rows {
            guard let action = ReceiptAction(rawValue: try row.decode(String.self, at: 1)),
                ruleSet.isDone(by: action, of: try row.decode(String.self, at: 3))
            else { continue }
            let item = ItemKey(app: person.app, item: try row.decode(String.self, at: 0))
            let moment = Timestamp(try row.decode(Date.self, at: 2))
            done[item] = max(done[item] ?? moment, moment)
        }
        guard !done.isEmpty else { return }
        let finished = done
        try await pool.transaction { transaction in
            try await transaction.execute(AdvisoryLock.decisions.shared)
            try await transaction.finish(finished, of: person.user, now: now)
        }
    }

    /// Whether the notification `new.notification` is the user's own.
    private static func isOwn(_ person: PersonKey) -> SQL {
        let (app, user) = (person.app.rawValue, person.user.rawValue)
        return """
            (EXISTS (
                SELECT FROM rules.decision JOIN rules.event ON event.key = decision.event
                WHERE decision.notification = new.notification AND decision.user_id = \(user) AND event.app = \(app)
            ) OR EXISTS (
                SELECT FROM rules.inbox
                WHERE inbox.notification = new.notification AND inbox.user_id = \(user) AND inbox.app = \(app)))
            """
    }

    /// The stored ones of these receipts that are of the user's own notifications, for reports.
    func reports(_ receipts: [ReceiptsBody.Receipt], of person: PersonKey) async throws -> [ReceiptReport] {
        try await pool.query(
            """
            SELECT DISTINCT receipt.notification, receipt.what, receipt.at, event.id, decision.rule
            FROM unnest(\(receipts.map(\.notification)), \(receipts.map(\.what.rawValue))) AS new (notification, what)
            JOIN rules.receipt ON receipt.notification = new.notification AND receipt.what = new.what
            LEFT JOIN rules.decision ON decision.notification = new.notification
                AND decision.user_id = \(person.user.rawValue)
            LEFT JOIN rules.event ON event.key = decision.event AND event.app = \(person.app.rawValue)
            WHERE \(Self.isOwn(person)) ORDER BY 1, 2
            """
        ).compactMap { row in
            guard let what = ReceiptAction(rawValue: try row.decode(String.self, at: 1)) else { return nil }
            return ReceiptReport(
                notification: try row.decode(UUID.self, at: 0), what: what,
                at: Timestamp(try row.decode(Date.self, at: 2)), event: try row.decode(String?.self, at: 3),
                rule: try row.decode(String?.self, at: 4))
        }
    }
}
