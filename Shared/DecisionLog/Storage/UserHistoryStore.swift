package import Postgres
package import PushProtocol
import FoundationEssentials

/// Reads a user's last notifications from the schema `rules`.
package struct UserHistoryStore: Sendable {
    /// The maximum number of notifications, and of those that wait.
    package static let maximumRows = 200

    private let database: PostgresPool

    package init(_ database: PostgresPool) { self.database = database }

    /// - Parameter limit: the maximum number of notifications, at most ``maximumRows``; of those that wait too.
    package func history(of user: UserID, in app: AppID, limit: Int) async throws(PostgresError) -> UserHistory {
        var rows: [UserHistory.Row] = []
        for row in try await database.query(Self.last(user, app, limit)) {
            let notification: UUID = try row.decode(at: 0)
            if rows.last?.notification != notification { rows.append(try UserHistory.Row(row)) }
            guard let origin: String = try row.decode(at: 8) else { continue }
            rows[rows.count - 1].results.append(
                UserHistory.Row.Result(
                    origin: origin, disposition: try row.decode(at: 9), reason: try row.decode(at: 10),
                    count: try row.decode(at: 11)))
        }
        let waiting = try await database.query(Self.waiting(user, app, limit)).map { row throws(PostgresError) in
            UserHistory.Waiting(
                notification: try row.decode(at: 0), event: try row.decode(at: 1), rule: try row.decode(at: 2),
                kind: try row.decode(at: 3), dueAt: try row.decode(at: 4))
        }
        return UserHistory(rows: rows, waiting: waiting)
    }

    private static func last(_ user: UserID, _ app: AppID, _ limit: Int) -> SQL {
        """
        SELECT last.notification, last.id, last.type, last.rule, last.decided_at, last.answer, last.reason, last.until,
            outcome.origin, outcome.disposition, outcome.reason, count(outcome.notification)
        FROM (
            SELECT * FROM (
                SELECT DISTINCT ON (decision.notification) decision.notification, event.id, event.type, decision.rule,
                    decision.decided_at, decision.answer, decision.reason, decision.until
                FROM rules.decision JOIN rules.event ON event.key = decision.event AND event.app = \(app.rawValue)
                WHERE decision.user_id = \(user.rawValue) ORDER BY decision.notification, decision.step DESC
            ) AS newest ORDER BY decided_at DESC, notification LIMIT \(limit)
        ) AS last
            LEFT JOIN rules.outcome ON outcome.notification = last.notification
        GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
        ORDER BY last.decided_at DESC, last.notification, outcome.origin, outcome.disposition, outcome.reason
        """
    }

    /// Starts at the decisions, whose users are indexed.
    private static func waiting(_ user: UserID, _ app: AppID, _ limit: Int) -> SQL {
        """
        SELECT held.notification, event.id, decision.rule, held.kind, held.due_at
        FROM rules.decision
            JOIN rules.held ON held.notification = decision.notification AND held.step = decision.step + 1
            JOIN rules.event ON event.key = decision.event
        WHERE decision.user_id = \(user.rawValue) AND held.app = \(app.rawValue) AND held.leaving IS NULL
        ORDER BY held.due_at, held.notification LIMIT \(limit)
        """
    }
}

extension UserHistory.Row {
    fileprivate init(_ row: PostgresRow) throws(PostgresError) {
        self.init(
            notification: try row.decode(at: 0), event: try row.decode(at: 1), type: try row.decode(at: 2),
            rule: try row.decode(at: 3), decidedAt: try row.decode(at: 4), answer: try row.decode(at: 5),
            reason: try row.decode(at: 6), until: try row.decode(at: 7))
    }
}
