package import FoundationEssentials
package import Postgres
package import PushProtocol

/// Reads recordings of decisions, and the decisions in the log. A login in the group `heliograph_recordings` may use it.
package struct RecordingLog: Sendable {
    /// The number of recordings of a page.
    package static let page = 500

    private let database: PostgresPool

    package init(_ database: PostgresPool) { self.database = database }

    /// A recording as it is stored. The module `RuleEngine` decodes its body.
    package struct Row: Sendable {
        package var id: Int64
        package var app: String
        package var kind: String
        package var event: UUID
        package var ruleSet: UUID?
        package var at: Date
        package var decisions: Int
        package var body: String
    }

    /// A stored decision.
    package struct Decision: Sendable {
        package var notification: UUID
        package var step: Int
        package var answer: String
        package var reason: String
        package var until: Date?
    }

    /// The next recordings of these apps, in the order of their times.
    ///
    /// - Parameters:
    ///   - from: the earliest time.
    ///   - last: the last row of the previous page.
    package func page(of apps: [AppID], from: Date, after last: Row?) async throws(PostgresError) -> [Row] {
        let rest: SQL = last.map { "AND (at, id) > (\($0.at), \($0.id))" } ?? ""
        return try await database.query(
            """
            SELECT id, app, kind, event, rule_set, at, decisions, body::text FROM rules.recording
            WHERE app = ANY(\(apps.map(\.rawValue))) AND at >= \(from) \(rest) ORDER BY at, id LIMIT \(Self.page)
            """
        ).map { row throws(PostgresError) in
            Row(
                id: try row.decode(at: 0), app: try row.decode(at: 1), kind: try row.decode(at: 2),
                event: try row.decode(at: 3), ruleSet: try row.decode(at: 4), at: try row.decode(at: 5),
                decisions: Int(try row.decode(Int32.self, at: 6)), body: try row.decode(at: 7))
        }
    }

    /// The decisions on these notifications.
    package func decisions(on notifications: Set<UUID>) async throws(PostgresError) -> [Decision] {
        guard !notifications.isEmpty else { return [] }
        return try await database.query(
            """
            SELECT notification, step, answer, reason, until FROM rules.decision
            WHERE notification = ANY(\(Array(notifications)))
            """
        ).map { row throws(PostgresError) in
            Decision(
                notification: try row.decode(at: 0), step: Int(try row.decode(Int32.self, at: 1)),
                answer: try row.decode(at: 2), reason: try row.decode(at: 3), until: try row.decode(at: 4))
        }
    }
}
