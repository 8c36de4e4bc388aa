import FoundationEssentials
package import Postgres
import PushProtocol

/// Stores and reads revocations. A worker of rules carries them out.
package struct RevocationLog: Sendable {
    /// The maximum number of revocations that an explanation shows, the latest.
    package static let maximumRevocations = 20

    private let database: PostgresPool

    package init(_ database: PostgresPool) { self.database = database }

    /// The result of a request.
    package enum RequestResult: Hashable, Sendable {
        /// The app has no such event or notification.
        case unknown
        /// The id is that of a campaign, whose users rules does not know.
        case isCampaign
        /// Stored by this request, or by an equal one before.
        case recorded(Revocation, isNew: Bool)
    }

    /// Stores a request in one transaction. A repeated request changes nothing and returns the first one's row.
    package func record(
        _ request: RevocationRequest, by requester: RevocationRequest.Requester
    ) async throws -> RequestResult {
        try await database.transaction { transaction in
            let stored = Self.select("revocation.id = \(request.id)")
            if let row = try await transaction.query(stored).first {
                return .recorded(try Revocation(row), isNew: false)
            }
            if let obstacle = try await Self.obstacle(to: request, transaction) { return obstacle }
            let isNew = try await transaction.execute(Self.insert(request, by: requester)) > 0
            guard let row = try await transaction.query(stored).first else { return .unknown }
            return .recorded(try Revocation(row), isNew: isNew)
        }
    }

    /// Counts the things that a request would revoke now; `nil` if the app has no such event or notification.
    package func preview(_ request: RevocationRequest) async throws -> Revocation.Effect? {
        try await database.transaction { transaction in
            switch try await Self.obstacle(to: request, transaction) {
            case .unknown: return nil
            case .isCampaign, .recorded: return Revocation.Effect()
            case nil: break
            }
            guard let row = try await transaction.query(Self.counts(of: request)).first else { return nil }
            return Revocation.Effect(
                held: try row.decode(at: 0), gathered: try row.decode(at: 1), fanOuts: try row.decode(at: 2),
                pushes: try row.decode(at: 3), shown: try row.decode(at: 4), inboxItems: try row.decode(at: 5))
        }
    }

    /// Adds the latest revocations to explanations: those of the event, or of a notification on the page. Adds the latest
    /// clear commands of the page's notifications.
    package func adding(to explanations: [Explanation]) async throws(PostgresError) -> [Explanation] {
        var explanations = explanations
        for index in explanations.indices {
            explanations[index].revocations = try await revocations(of: explanations[index])
            explanations[index].clears = try await clears(of: explanations[index])
        }
        return explanations
    }

    private func revocations(of explanation: Explanation) async throws(PostgresError) -> [Revocation] {
        let ofItem: SQL = """
            revocation.item IN (
                SELECT event_item.item FROM rules.event_item JOIN rules.event ON event.key = event_item.event
                WHERE event.id = \(explanation.id) AND event.app = \(explanation.app)
                    AND event_item.occurred_at <= revocation.until_at)
            """
        return try await database.query(
            """
            \(Self.select(
                """
                revocation.app = \(explanation.app) AND NOT is_of_surface AND (revocation.event_id = \(explanation.id)
                    OR revocation.notification = ANY(\(explanation.traces.map(\.notification))) OR \(ofItem))
                """)) ORDER BY requested_at DESC, revocation.id LIMIT \(Self.maximumRevocations)
            """
        ).map { row throws(PostgresError) in try Revocation(row) }
    }

    private func clears(of explanation: Explanation) async throws(PostgresError) -> [Explanation.Clear] {
        let rows = try await database.query(
            """
            SELECT copy.notification, copy.user_id, copy.noted_at, copy.command, copy.sent_at,
                outcome.at, outcome.origin, outcome.device, outcome.disposition, outcome.reason
            FROM (
                SELECT * FROM rules.shown_copy
                WHERE notification = ANY(\(explanation.traces.map(\.notification))) AND is_accepted
                ORDER BY noted_at DESC, notification LIMIT \(Self.maximumRevocations)
            ) AS copy
            LEFT JOIN rules.outcome ON outcome.notification = copy.command AND copy.sent_at IS NOT NULL
            ORDER BY copy.noted_at DESC, copy.notification, outcome.at, outcome.device
            """)
        var clears: [Explanation.Clear] = []
        for row in rows {
            let notification: UUID = try row.decode(at: 0)
            if clears.last?.notification != notification {
                clears.append(
                    Explanation.Clear(
                        notification: notification, user: try row.decode(at: 1), notedAt: try row.decode(at: 2),
                        command: try row.decode(at: 3), sentAt: try row.decode(at: 4), outcomes: []))
            }
            guard let at = try row.decode(Date?.self, at: 5) else { continue }
            clears[clears.count - 1].outcomes.append(
                Explanation.Outcome(
                    at: at, origin: try row.decode(at: 6), device: try row.decode(at: 7),
                    disposition: try row.decode(at: 8), reason: try row.decode(at: 9)))
        }
        return clears
    }

    /// Returns the result of a request that cannot be stored; `nil` for any other.
    private static func obstacle(
        to request: RevocationRequest, _ transaction: PostgresTransaction
    ) async throws -> RequestResult? {
        switch request.target {
        case .event(let event):
            guard !request.isAhead else { return nil }
            let isKnown: Bool = try await transaction.query(
                "SELECT EXISTS (SELECT FROM rules.event WHERE id = \(event) AND app = \(request.app.rawValue))"
            ).single()
            return isKnown ? nil : .unknown
        case .notification(let notification):
            let (app, user) = (request.app.rawValue, request.user?.rawValue)
            // A digest that is held has no decision yet.
            let rows = try await transaction.query(
                """
                SELECT reason IN ('audience', 'segment') FROM rules.decision JOIN rules.event ON event.key = decision.event
                WHERE decision.notification = \(notification) AND event.app = \(app)
                    AND coalesce(decision.user_id = \(user), true)
                UNION ALL
                SELECT false FROM rules.held WHERE notification = \(notification) AND held.app = \(app)
                    AND coalesce(held.user_id = \(user), true)
                LIMIT 1
                """)
            guard let row = rows.first else { return .unknown }
            return try row.decode(Bool.self, at: 0) ? .isCampaign : nil
        }
    }

    private static func insert(_ request: RevocationRequest, by requester: RevocationRequest.Requester) -> SQL {
        var (event, notification): (String?, UUID?) = (nil, nil)
        switch request.target {
        case .event(let id): event = id
        case .notification(let id): notification = id
        }
        let name: SQL =
            switch requester {
            case .key(let id): "coalesce((SELECT name FROM rules.api_key WHERE api_key.id = \(id)), \(id))"
            case .masterKey: "'the master key'"
            case .commandLine: "'pushctl as ' || session_user"
            }
        return """
            INSERT INTO rules.revocation
                (id, app, event_id, notification, user_id, inbox, source, requested_by, reason)
            VALUES (
                \(request.id), \(request.app.rawValue), \(event), \(notification), \(request.user?.rawValue),
                \(request.inbox.rawValue), 'operator', \(name), \(request.reason))
            ON CONFLICT DO NOTHING
            """
    }

    private static func counts(of request: RevocationRequest) -> SQL {
        let target = request.target.stored
        let (app, user) = (request.app.rawValue, request.user?.rawValue)
        let chosen = RevocationSelection.notifications(of: target, app: app, user: user)
        let fanOuts: SQL = user == nil ? RevocationSelection.fanOuts(of: target, app: app) : "false"
        let ids: SQL = "SELECT notification FROM chosen"
        let inbox: SQL = request.inbox == .keep ? "WHERE false" : ""
        return """
            WITH chosen AS MATERIALIZED (\(chosen))
            SELECT (SELECT count(*) FROM rules.held JOIN chosen USING (notification) WHERE leaving IS NULL),
                (SELECT count(*) FROM rules.digest_item JOIN chosen USING (notification)),
                (SELECT count(*) FROM rules.crowd WHERE due_at IS NOT NULL AND \(fanOuts)),
                (SELECT count(*) FROM (\(RevocationSelection.pushes(among: ids))) AS sent WHERE NOT is_accepted),
                (SELECT count(*) FROM (\(RevocationSelection.shown(among: ids))) AS shown),
                (SELECT count(*) FROM rules.inbox JOIN chosen USING (notification) \(inbox))
            """
    }

    /// - Parameter which: a condition on `rules.revocation`.
    private static func select(_ which: SQL) -> SQL {
        """
        SELECT \(Revocation.columns), ARRAY(
                SELECT decision.notification FROM rules.event JOIN rules.decision ON decision.event = event.key
                WHERE event.id = revocation.event_id AND event.app = revocation.app
                    AND decision.reason IN ('audience', 'segment') AND decision.answer = 'push'
            ) AS campaigns
        FROM rules.revocation WHERE \(which)
        """
    }
}

extension RevocationRequest.Target {
    fileprivate var stored: Revocation.Target {
        switch self {
        case .event(let event): .event(event)
        case .notification(let notification): .notification(notification)
        }
    }
}

extension Revocation {
    /// The columns for ``init(row:)``, in its order.
    package static let columns: SQL = """
        revocation.id, revocation.app, revocation.event_id, revocation.notification, revocation.item,
        revocation.until_at, revocation.user_id, revocation.inbox, revocation.source, revocation.requested_by,
        revocation.reason, revocation.requested_at, revocation.ended_at, revocation.held, revocation.gathered,
        revocation.fan_outs, revocation.pushes, revocation.inbox_items, revocation.shown
        """

    /// Decodes a row that begins with ``columns``, without campaigns.
    package init(row: PostgresRow) throws(PostgresError) {
        let target: Target
        if let event = try row.decode(String?.self, at: 2) {
            target = .event(event)
        } else if let notification = try row.decode(UUID?.self, at: 3) {
            target = .notification(notification)
        } else {
            target = .item(try row.decode(at: 4), until: try row.decode(at: 5))
        }
        self.init(
            id: try row.decode(at: 0), app: try row.decode(at: 1), target: target, user: try row.decode(at: 6),
            inbox: try row.decode(at: 7), source: try row.decode(at: 8), requestedBy: try row.decode(at: 9),
            reason: try row.decode(at: 10), requestedAt: try row.decode(at: 11), endedAt: try row.decode(at: 12),
            effect: Effect(
                held: try row.decode(at: 13), gathered: try row.decode(at: 14), fanOuts: try row.decode(at: 15),
                pushes: try row.decode(at: 16), shown: try row.decode(at: 18), inboxItems: try row.decode(at: 17)))
    }

    /// Decodes a row of ``columns`` and the campaigns.
    fileprivate init(_ row: PostgresRow) throws(PostgresError) {
        try self.init(row: row)
        campaigns = try row.decode(at: 19)
    }
}

extension Revocation.Inbox: PostgresValue {}
extension Revocation.Source: PostgresValue {}
