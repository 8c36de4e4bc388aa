import FoundationEssentials
import Messaging
import Postgres
import PushProtocol
import ServiceKit

/// What waits, and what was let go and is not known to be published.
struct HeldStore: Sendable {
    /// The most that is taken at once.
    static let batch = 500
    /// How long one process has to publish what it let go.
    static let lease = Duration.seconds(30)

    let pool: PostgresPool
    var spread = DecisionStore.usualSpread

    /// A notification that is to be published now.
    struct Release: Sendable {
        var saying: Saying
        var recipient: Notification.Recipient
        var isQuiet: Bool
    }

    /// Judges what is due in one transaction, and lends what is to be published, with what was lent before and not said
    /// to be published in time. Any number of processes may do this: none gets what another has.
    ///
    /// - Returns: what to publish, and how much was looked at.
    func release(by book: RuleBook, now: Timestamp) async throws -> (releases: [Release], taken: Int) {
        try await Outage.ofDatabase {
            try await pool.transaction { transaction in
                var items: [Item] = []
                for row in try await transaction.query(HeldStore.due(now)) { items.append(try Item(row)) }
                guard !items.isEmpty else { return ([], 0) }
                try await judge(&items, by: book, transaction, now: now)
                return (items.compactMap(\.release), items.count)
            }
        }
    }

    /// Forgets what the broker has confirmed.
    func forget(_ published: [UUID]) async throws {
        guard !published.isEmpty else { return }
        try await Outage.ofDatabase {
            try await pool.execute(
                "DELETE FROM rules.held WHERE notification = ANY(\(published)) AND leaving IS NOT NULL")
        }
    }

    private func judge(
        _ items: inout [Item], by book: RuleBook, _ transaction: PostgresTransaction, now: Timestamp
    ) async throws {
        let waiting = items.indices.filter { items[$0].leaving == nil }
        let rules = Dictionary(waiting.map { ($0, book.rule(of: items[$0].saying)) }) { first, _ in first }
        func keys(_ wanted: (Rule, HouseRules) -> Bool) -> [PersonKey] {
            waiting.filter { index in rules[index].flatMap { $0 }.map { wanted($0.rule, $0.set.house) } ?? false }
                .map { items[$0].person }
        }
        let charged = keys { $0.policy.isCapped || $1.isCritical($0.policy) }
        var people = try await transaction.people(
            asked: waiting.map { items[$0].person }, charged: charged,
            watched: keys { rule, _ in rule.policy.presence != .ignored }, now: now)
        var decisions: [Ruled] = []
        for index in waiting {
            let item = items[index]
            let found = rules[index].flatMap { $0 }
            let judgement =
                found.map { found in
                    Judge(house: found.set.house, now: now).judge(
                        item.matter(found.rule.policy), &people[item.person, default: Person()])
                } ?? Judgement(answer: .inbox, reason: .ruleGone)
            decisions.append(
                Ruled(
                    notification: item.recipient.notification, step: item.step, event: item.event,
                    rule: item.saying.rule, person: item.person, judgement: judgement, ruleSet: found?.set.version))
            items[index].take(judgement, spread: spread)
        }
        try await count(&items, rules, transaction)
        var writes = RulingWrites(decidedAt: now)
        writes.decisions = decisions
        for key in Set(charged) { writes.logs[key] = people[key]?.logs }
        if !decisions.isEmpty { try await transaction.execute(writes.sql()) }
        try await transaction.execute(HeldStore.update(items, now: now))
        let over = items.filter(\.isOver).map(\.recipient.notification)
        if !over.isEmpty {
            try await transaction.execute("DELETE FROM rules.held WHERE notification = ANY(\(over))")
        }
    }

    /// Gives what leaves the badge of now, not that of when it was held.
    private func count(
        _ items: inout [Item], _ rules: [Int: (rule: Rule, set: RuleSet)?], _ transaction: PostgresTransaction
    ) async throws {
        let counting = items.indices.filter { index in
            items[index].leaving != nil && rules[index].flatMap { $0 }?.rule.how.countsUnread == true
        }
        let unread = try await transaction.unread(Set(counting.map { items[$0].person }))
        for index in counting { items[index].recipient.badge = Content.badge(unread[items[index].person] ?? 0) }
    }

    private static func due(_ now: Timestamp) -> SQL {
        """
        SELECT held.notification, held.app, held.user_id, held.saying, held.event, held.badge, held.since, held.leaving,
            held.quiet_holds, held.step, saying.rule, saying.lane, saying.content::text, saying.mutes,
            saying.expires_at, saying.delivery, saying.correlation, saying.traceparent
        FROM rules.held JOIN rules.saying ON saying.id = held.saying
        WHERE held.due_at <= \(now.date) ORDER BY held.due_at LIMIT \(batch) FOR UPDATE OF held SKIP LOCKED
        """
    }

    private static func update(_ items: [Item], now: Timestamp) -> SQL {
        """
        UPDATE rules.held SET badge = new.badge, due_at = new.due_at, leaving = new.leaving, quiet_holds = new.quiet_holds, step = new.step
        FROM unnest(
            \(items.map(\.recipient.notification)), \(items.map { ($0.dueAt ?? now + lease).date }),
            \(items.map { $0.leaving?.word }), \(items.map(\.quietHolds)), \(items.map(\.step)),
            \(items.map(\.recipient.badge))
        ) AS new (notification, due_at, leaving, quiet_holds, step, badge) WHERE held.notification = new.notification
        """
    }
}

extension RuleBook {
    fileprivate func rule(of saying: Saying) -> (rule: Rule, set: RuleSet)? {
        guard let set = ruleSets[saying.app], let rule = set.rule(named: saying.rule) else { return nil }
        return (rule, set)
    }
}

extension HeldStore {
    /// A row, and what becomes of it.
    fileprivate struct Item: Sendable {
        var saying: Saying
        var recipient: Notification.Recipient
        var event: UUID
        var since: Timestamp
        var quietHolds: Int
        var step: Int
        /// What it was let go with.
        var leaving: Judgement.Answer?
        /// When it is judged again; `nil` when it is leaving.
        var dueAt: Timestamp?
        var isOver = false

        var person: PersonKey { PersonKey(app: saying.app, user: recipient.user) }

        var release: Release? {
            leaving.map { Release(saying: saying, recipient: recipient, isQuiet: $0 == .pushQuietly) }
        }

        func matter(_ policy: Rule.Policy) -> Matter {
            Matter(
                policy: policy, isNoise: true, mutes: saying.mutes, thread: saying.content.thread,
                expiresAt: saying.expiresAt, since: since, quietHolds: quietHolds)
        }

        mutating func take(_ judgement: Judgement, spread: Duration) {
            step += 1
            switch judgement.answer {
            case .push, .pushQuietly: leaving = judgement.answer
            case .hold:
                dueAt = judgement.dueAt(recipient.notification, spread: spread)
                if judgement.reason == .quietHours { quietHolds += 1 }
            case .inbox, .drop: isOver = true
            }
        }

        init(_ row: PostgresRow) throws {
            let app = try row.decode(AppID.self, at: 1)
            recipient = Notification.Recipient(
                user: try row.decode(UserID.self, at: 2), notification: try row.decode(UUID.self, at: 0),
                badge: try row.decode(Int32?.self, at: 5).map(Int.init))
            event = try row.decode(UUID.self, at: 4)
            since = Timestamp(try row.decode(Date.self, at: 6))
            leaving = try row.decode(String?.self, at: 7).flatMap { Judgement.Answer(word: $0, until: nil) }
            quietHolds = Int(try row.decode(Int32.self, at: 8))
            step = Int(try row.decode(Int32.self, at: 9))
            saying = try Saying(
                row, id: row.decode(UUID.self, at: 3), app: app, from: 10)
        }
    }
}

extension Saying {
    /// The columns rule, lane, content, mutes, expires_at, delivery, correlation and traceparent, from one position on.
    init(_ row: PostgresRow, id: UUID, app: AppID, from column: Int) throws {
        self.init(
            id: id, app: app, rule: try row.decode(String.self, at: column),
            lane: try row.decode(Lane.self, at: column + 1),
            content: try WireCoding.decode(
                Content.self, from: Array(try row.decode(String.self, at: column + 2).utf8)),
            mutes: try row.decode([String].self, at: column + 3),
            expiresAt: try row.decode(Date?.self, at: column + 4).map(Timestamp.init),
            delivery: try row.decode(String?.self, at: column + 5).flatMap(DeliveryPolicy.init(rawValue:)),
            correlation: try row.decode(String.self, at: column + 6),
            traceparent: try row.decode(String?.self, at: column + 7))
    }
}
