package import FoundationEssentials
package import Postgres
package import PushProtocol

/// What rules keeps about events, as an operator asks for it. Reads only, the tables of the schema `rules`.
package struct ExplanationStore: Sendable {
    /// The most notifications of an event in one answer.
    package static let largestPage = 200
    /// The most events of one id in one answer, the latest.
    package static let mostEvents = 10

    private let database: PostgresPool

    package init(_ database: PostgresPool) { self.database = database }

    /// What an operator wants to know.
    package struct Question: Hashable, Sendable {
        /// The event's id, as its upstream gave it: unique for its source only.
        package var event: String
        /// Only this app's event.
        package var app: AppID?
        /// Only this user's story.
        package var user: String?
        /// The ``Explanation/next`` of the page before this one.
        package var after: UUID?
        /// How many notifications of an event to tell of, at most ``largestPage``.
        package var limit: Int

        package init(
            event: String, app: AppID? = nil, user: String? = nil, after: UUID? = nil, limit: Int = largestPage
        ) {
            self.event = event
            self.app = app
            self.user = user
            self.after = after
            self.limit = limit
        }
    }

    /// The latest events of this id, the latest first, each with its first notifications; or, for a further page, the one
    /// event that the page before was of. Nothing, when there is no such event (any more).
    package func explain(_ question: Question) async throws(PostgresError) -> [Explanation] {
        var explanations: [Explanation] = []
        for row in try await database.query(Self.events(question)) {
            let place = try question.after.map { notification throws(PostgresError) in
                Place(
                    user: try row.decode(at: 7), rule: try row.decode(at: 8), notification: notification)
            }
            let event = try row.decode(UUID.self, at: 0)
            let (stories, isMore) = try await stories(of: event, question, after: place)
            explanations.append(
                Explanation(
                    app: try row.decode(String.self, at: 1), source: try row.decode(String.self, at: 2),
                    id: try row.decode(String.self, at: 3), type: try row.decode(String.self, at: 4),
                    arrivedAt: try row.decode(Date.self, at: 5), ruleSet: try row.decode(UUID.self, at: 6),
                    crowds: question.after == nil ? try await crowds(of: event) : [], stories: stories,
                    next: isMore ? stories.last?.notification : nil))
        }
        return explanations
    }

    /// Where a page begins: after this.
    private struct Place {
        var user: String
        var rule: String
        var notification: UUID
    }

    private static func events(_ question: Question) -> SQL {
        let ofApp: SQL = question.app.map { "AND event.app = \($0.rawValue)" } ?? ""
        guard let after = question.after else {
            return """
                SELECT key, app, source, id, type, arrived_at, rule_set FROM rules.event
                WHERE id = \(question.event) \(ofApp) ORDER BY arrived_at DESC, key LIMIT \(mostEvents)
                """
        }
        return """
            SELECT key, app, source, id, type, arrived_at, event.rule_set, user_id, rule
            FROM rules.decision JOIN rules.event ON event.key = decision.event
            WHERE decision.notification = \(after) AND event.id = \(question.event) \(ofApp) LIMIT 1
            """
    }

    private func stories(
        of event: UUID, _ question: Question, after place: Place?
    ) async throws(PostgresError) -> (stories: [Explanation.Story], isMore: Bool) {
        var stories: [Explanation.Story] = []
        for row in try await database.query(Self.decisions(of: event, question, after: place)) {
            let notification = try row.decode(UUID.self, at: 0)
            if stories.last?.notification != notification { stories.append(try Explanation.Story(row)) }
            stories[stories.count - 1].decisions.append(
                Explanation.Decision(
                    at: try row.decode(Date.self, at: 3), answer: try row.decode(String.self, at: 4),
                    reason: try row.decode(String.self, at: 5), until: try row.decode(Date?.self, at: 6)))
        }
        let isMore = stories.count > question.limit
        if isMore { stories.removeLast() }
        let outcomes = try await outcomes(of: stories.map(\.notification))
        let receipts = try await receipts(of: stories.map(\.notification))
        for index in stories.indices {
            stories[index].outcomes = outcomes[stories[index].notification] ?? []
            stories[index].receipts = receipts[stories[index].notification] ?? []
        }
        return (stories, isMore)
    }

    /// The decisions about a page of notifications, and one more. Ordered by bytes, which is the same order everywhere and
    /// several times as quick as a language's.
    private static func decisions(of event: UUID, _ question: Question, after place: Place?) -> SQL {
        let ofUser: SQL = question.user.map { "AND user_id = \($0)" } ?? ""
        let beyond: SQL =
            place.map {
                """
                AND (user_id COLLATE "C", rule COLLATE "C", notification) > (\($0.user), \($0.rule), \($0.notification))
                """
            } ?? ""
        return """
            SELECT decision.notification, decision.user_id, decision.rule, decision.decided_at, decision.answer,
                decision.reason, decision.until, inbox.notification IS NOT NULL, inbox.read_at, held.due_at
            FROM (
                SELECT user_id, rule, notification FROM rules.decision WHERE event = \(event) \(ofUser) \(beyond)
                GROUP BY user_id, rule, notification
                ORDER BY user_id COLLATE "C", rule COLLATE "C", notification LIMIT \(question.limit + 1)
            ) AS page
                JOIN rules.decision ON decision.notification = page.notification AND decision.event = \(event)
                LEFT JOIN rules.inbox ON inbox.notification = page.notification
                LEFT JOIN rules.held ON held.notification = page.notification AND held.leaving IS NULL
            ORDER BY decision.user_id COLLATE "C", decision.rule COLLATE "C", decision.notification, decision.step
            """
    }

    private func crowds(of event: UUID) async throws(PostgresError) -> [Explanation.Crowd] {
        var crowds: [Explanation.Crowd] = []
        for row in try await database.query(Self.crowds(of: event)) {
            let decided = try row.decode(Int.self, at: 1)
            let named = try row.decode(Int?.self, at: 2)
            // Who was decided about and cannot have been a member was named.
            let namedAlready = max(0, decided - (try row.decode(Int.self, at: 3)))
            let members = try row.decode(Int.self, at: 4)
            crowds.append(
                Explanation.Crowd(
                    rule: try row.decode(String.self, at: 0), decided: decided,
                    leftAtMost: named.map { max(0, $0 - namedAlready) + members }))
        }
        return crowds
    }

    /// What is not told to everybody yet; the members of its groups who have had their turn, and those whose is to come.
    private static func crowds(of event: UUID) -> SQL {
        """
        SELECT crowd.rule, (
                SELECT count(*) FROM rules.decision
                WHERE decision.event = crowd.event AND decision.rule = crowd.rule AND step = 0),
            crowd.named, count(member.user_id) FILTER (WHERE member.user_id <= coalesce(crowd.decided, crowd.told)),
            count(member.user_id) FILTER (WHERE member.user_id > coalesce(crowd.decided, crowd.told))
        FROM rules.crowd JOIN rules.event ON event.key = crowd.event
            LEFT JOIN rules.member
                ON member.app = event.app AND member.circle = ANY(crowd.circles) AND NOT member.has_left
        WHERE crowd.event = \(event) AND crowd.due_at IS NOT NULL GROUP BY crowd.event, crowd.rule ORDER BY crowd.rule
        """
    }

    private func outcomes(of notifications: [UUID]) async throws(PostgresError) -> [UUID: [Explanation.Outcome]] {
        var outcomes: [UUID: [Explanation.Outcome]] = [:]
        let rows = try await database.query(
            """
            SELECT notification, at, origin, device, disposition, reason FROM rules.outcome
            WHERE notification = ANY(\(notifications)) ORDER BY at, device
            """)
        for row in rows {
            outcomes[try row.decode(UUID.self, at: 0), default: []].append(
                Explanation.Outcome(
                    at: try row.decode(Date.self, at: 1), origin: try row.decode(String.self, at: 2),
                    device: try row.decode(UUID?.self, at: 3), disposition: try row.decode(String.self, at: 4),
                    reason: try row.decode(String?.self, at: 5)))
        }
        return outcomes
    }

    private func receipts(of notifications: [UUID]) async throws(PostgresError) -> [UUID: [Explanation.Receipt]] {
        var receipts: [UUID: [Explanation.Receipt]] = [:]
        let rows = try await database.query(
            """
            SELECT notification, at, what FROM rules.receipt WHERE notification = ANY(\(notifications)) ORDER BY at, what
            """)
        for row in rows {
            receipts[try row.decode(UUID.self, at: 0), default: []].append(
                Explanation.Receipt(at: try row.decode(Date.self, at: 1), what: try row.decode(String.self, at: 2)))
        }
        return receipts
    }
}

extension Explanation.Story {
    /// Without decisions, outcomes and receipts.
    fileprivate init(_ row: PostgresRow) throws(PostgresError) {
        let isKept = try row.decode(Bool.self, at: 7)
        let readAt = try row.decode(Date?.self, at: 8)
        self.init(
            notification: try row.decode(UUID.self, at: 0), user: try row.decode(String.self, at: 1),
            rule: try row.decode(String.self, at: 2), decisions: [], outcomes: [],
            inbox: isKept ? readAt.map(Explanation.Inbox.read) ?? .unread : nil,
            dueAt: try row.decode(Date?.self, at: 9), receipts: [])
    }
}
