package import FoundationEssentials
package import Postgres
package import PushProtocol

/// Reads the decisions about events from the schema `rules`.
package struct ExplanationStore: Sendable {
    /// The maximum number of an event's notifications on a page.
    package static let maximumPageSize = 200
    /// The maximum number of events with the same id; the latest are returned.
    package static let maximumEvents = 10

    private let database: PostgresPool

    package init(_ database: PostgresPool) { self.database = database }

    package struct ExplanationQuery: Hashable, Sendable {
        /// The event's id from the upstream service; unique for its source only.
        package var event: String
        /// Limits the result to this app's events.
        package var app: AppID?
        /// Limits the result to this source's event.
        package var source: String?
        /// Limits the result to this user's notifications.
        package var user: String?
        /// The ``Explanation/next`` of the previous page.
        package var after: UUID?
        /// The page size, at most ``maximumPageSize`` notifications.
        package var limit: Int

        package init(
            event: String, app: AppID? = nil, source: String? = nil, user: String? = nil, after: UUID? = nil,
            limit: Int = maximumPageSize
        ) {
            self.event = event
            self.app = app
            self.source = source
            self.user = user
            self.after = after
            self.limit = limit
        }
    }

    /// Returns the events with this id, latest first, each with its first page; for a further page, only that page's
    /// event. Returns nothing for unknown or deleted events.
    package func explain(_ question: ExplanationQuery) async throws(PostgresError) -> [Explanation] {
        var explanations: [Explanation] = []
        for row in try await database.query(Self.events(question)) {
            let pageStart = try question.after.map { notification throws(PostgresError) in
                PageStart(
                    user: try row.decode(at: 7), rule: try row.decode(at: 8), notification: notification)
            }
            let event = try row.decode(UUID.self, at: 0)
            let (traces, isMore) = try await traces(of: event, question, after: pageStart)
            explanations.append(
                Explanation(
                    app: try row.decode(String.self, at: 1), source: try row.decode(String.self, at: 2),
                    id: try row.decode(String.self, at: 3), type: try row.decode(String.self, at: 4),
                    arrivedAt: try row.decode(Date.self, at: 5), ruleSet: try row.decode(UUID.self, at: 6),
                    fanOuts: question.after == nil ? try await fanOuts(of: event) : [], traces: traces,
                    next: isMore ? traces.last?.notification : nil,
                    totals: isMore && question.after == nil ? try await totals(of: event) : nil))
        }
        return explanations
    }

    /// The last row of the previous page.
    private struct PageStart {
        var user: String
        var rule: String
        var notification: UUID
    }

    private static func events(_ question: ExplanationQuery) -> SQL {
        let ofApp: SQL = question.app.map { "AND event.app = \($0.rawValue)" } ?? ""
        let ofSource: SQL = question.source.map { "AND event.source = \($0)" } ?? ""
        guard let after = question.after else {
            return """
                SELECT key, app, source, id, type, arrived_at, rule_set FROM rules.event
                WHERE id = \(question.event) \(ofApp) \(ofSource) ORDER BY arrived_at DESC, key LIMIT \(maximumEvents)
                """
        }
        return """
            SELECT key, app, source, id, type, arrived_at, event.rule_set, user_id, rule
            FROM rules.decision JOIN rules.event ON event.key = decision.event
            WHERE decision.notification = \(after) AND event.id = \(question.event) \(ofApp) \(ofSource)
            LIMIT 1
            """
    }

    private func traces(
        of event: UUID, _ question: ExplanationQuery, after pageStart: PageStart?
    ) async throws(PostgresError) -> (traces: [Explanation.NotificationTrace], isMore: Bool) {
        var traces: [Explanation.NotificationTrace] = []
        for row in try await database.query(Self.decisions(of: event, question, after: pageStart)) {
            let notification = try row.decode(UUID.self, at: 0)
            if traces.last?.notification != notification { traces.append(try Explanation.NotificationTrace(row)) }
            traces[traces.count - 1].decisions.append(
                Explanation.Decision(
                    at: try row.decode(Date.self, at: 3), answer: try row.decode(String.self, at: 4),
                    reason: try row.decode(String.self, at: 5), until: try row.decode(Date?.self, at: 6)))
        }
        let isMore = traces.count > question.limit
        if isMore { traces.removeLast() }
        let outcomes = try await outcomes(of: traces.map(\.notification))
        let receipts = try await receipts(of: traces.map(\.notification))
        for index in traces.indices {
            traces[index].outcomes = outcomes[traces[index].notification] ?? []
            traces[index].receipts = receipts[traces[index].notification] ?? []
        }
        return (traces, isMore)
    }

    /// Returns the query for a page of notifications, and one more. Ordered by bytes (collation C), which does not
    /// depend on the locale and is several times faster.
    private static func decisions(of event: UUID, _ question: ExplanationQuery, after pageStart: PageStart?) -> SQL {
        let ofUser: SQL = question.user.map { "AND user_id = \($0)" } ?? ""
        let beyond: SQL =
            pageStart.map {
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

    private func fanOuts(of event: UUID) async throws(PostgresError) -> [Explanation.FanOut] {
        var fanOuts: [Explanation.FanOut] = []
        for row in try await database.query(Self.fanOuts(of: event)) {
            let decided = try row.decode(Int.self, at: 1)
            let named = try row.decode(Int?.self, at: 2)
            // Decided users that are not members were named in the event.
            let namedAlready = max(0, decided - (try row.decode(Int.self, at: 3)))
            let members = try row.decode(Int.self, at: 4)
            fanOuts.append(
                Explanation.FanOut(
                    rule: try row.decode(String.self, at: 0), decided: decided,
                    leftAtMost: named.map { max(0, $0 - namedAlready) + members }))
        }
        return fanOuts
    }

    /// Returns the query for fan-outs in progress, with the numbers of group members already decided and left.
    private static func fanOuts(of event: UUID) -> SQL {
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

    private func totals(of event: UUID) async throws(PostgresError) -> Explanation.Totals? {
        guard let row = try await database.query(Self.totals(of: event)).first else { return nil }
        return Explanation.Totals(withoutOutcome: try row.decode(at: 0), outcomes: try row.decode(at: 1))
    }

    /// Returns the query for counts of an event's last decisions.
    private static func totals(of event: UUID) -> SQL {
        """
        SELECT count(*) FILTER (
                WHERE outcomes.number = 0 AND last.answer LIKE 'push%'
                    AND last.reason <> ALL(\(Explanation.reasonsWithoutOutcome))),
            coalesce(sum(outcomes.number), 0)::int8
        FROM (
                SELECT DISTINCT ON (notification) notification, answer, reason FROM rules.decision
                WHERE event = \(event) ORDER BY notification, step DESC
            ) AS last
            CROSS JOIN LATERAL (
                SELECT count(*) AS number FROM rules.outcome WHERE outcome.notification = last.notification
            ) AS outcomes
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

extension Explanation.NotificationTrace {
    /// Creates a trace without decisions, outcomes and receipts.
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
