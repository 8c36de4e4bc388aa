import FoundationEssentials
import Postgres
import PushProtocol

/// What rules keeps about events, as an operator asks for it.
struct ExplanationStore: Sendable {
    private let database: PostgresPool

    init(_ database: PostgresPool) { self.database = database }

    /// Every event of this id, the latest first: an id is unique for its source only.
    ///
    /// - Parameter user: only this user's story.
    func explain(event id: String, app: AppID?, user: String?) async throws(PostgresError) -> [Explanation] {
        let app = app?.rawValue
        var explanations: [Explanation] = []
        let events = try await database.query(
            """
            SELECT key, app, source, id, type, arrived_at, rule_set FROM rules.event
            WHERE id = \(id) AND (\(app)::text IS NULL OR app = \(app)) ORDER BY arrived_at DESC, key
            """)
        for row in events {
            let key = try row.decode(UUID.self, at: 0)
            explanations.append(
                Explanation(
                    app: try row.decode(String.self, at: 1), source: try row.decode(String.self, at: 2),
                    id: try row.decode(String.self, at: 3), type: try row.decode(String.self, at: 4),
                    arrivedAt: try row.decode(Date.self, at: 5), ruleSet: try row.decode(UUID.self, at: 6),
                    stories: try await stories(of: key, user: user)))
        }
        return explanations
    }

    private func stories(of event: UUID, user: String?) async throws(PostgresError) -> [Explanation.Story] {
        var stories: [Explanation.Story] = []
        let decisions = try await database.query(
            """
            SELECT decision.notification, decision.user_id, decision.rule, decision.decided_at, decision.answer,
                decision.reason, decision.until, inbox.notification IS NOT NULL, inbox.read_at, held.due_at
            FROM rules.decision LEFT JOIN rules.inbox USING (notification)
                LEFT JOIN rules.held ON held.notification = decision.notification AND held.leaving IS NULL
            WHERE decision.event = \(event) AND (\(user)::text IS NULL OR decision.user_id = \(user))
            ORDER BY decision.user_id, decision.rule, decision.notification, decision.step
            """)
        for row in decisions {
            let notification = try row.decode(UUID.self, at: 0)
            if stories.last?.notification != notification { stories.append(try Explanation.Story(row)) }
            stories[stories.count - 1].decisions.append(
                Explanation.Decision(
                    at: try row.decode(Date.self, at: 3), answer: try row.decode(String.self, at: 4),
                    reason: try row.decode(String.self, at: 5), until: try row.decode(Date?.self, at: 6)))
        }
        var outcomes: [UUID: [Explanation.Outcome]] = [:]
        let rows = try await database.query(
            """
            SELECT notification, at, origin, device, disposition, reason FROM rules.outcome
            WHERE notification = ANY(\(stories.map(\.notification))) ORDER BY at, device
            """)
        for row in rows {
            outcomes[try row.decode(UUID.self, at: 0), default: []].append(
                Explanation.Outcome(
                    at: try row.decode(Date.self, at: 1), origin: try row.decode(String.self, at: 2),
                    device: try row.decode(UUID?.self, at: 3), disposition: try row.decode(String.self, at: 4),
                    reason: try row.decode(String?.self, at: 5)))
        }
        for index in stories.indices { stories[index].outcomes = outcomes[stories[index].notification] ?? [] }
        return stories
    }
}

extension Explanation.Story {
    /// Without decisions and outcomes.
    fileprivate init(_ row: PostgresRow) throws(PostgresError) {
        let isKept = try row.decode(Bool.self, at: 7)
        let readAt = try row.decode(Date?.self, at: 8)
        self.init(
            notification: try row.decode(UUID.self, at: 0), user: try row.decode(String.self, at: 1),
            rule: try row.decode(String.self, at: 2), decisions: [], outcomes: [],
            inbox: isKept ? readAt.map(Explanation.Inbox.read) ?? .unread : nil,
            dueAt: try row.decode(Date?.self, at: 9))
    }
}
