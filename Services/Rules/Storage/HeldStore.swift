import FoundationEssentials
import Logging
import Messaging
import Postgres
import PushProtocol
import RuleEngine
import RuleLanguage
import ServiceConnections

/// Held notifications, and released ones whose publication is not confirmed.
struct HeldStore: Sendable {
    /// The maximum number of rows that one call processes.
    static let batch = 500
    /// The maximum while interactive messages arrive.
    static let smallBatch = 50
    /// The time that a process has to publish the notifications it released.
    static let lease = Duration.seconds(30)

    let pool: PostgresPool
    var spread = RuleDecision.spread
    var logger = Logger.rules
    /// The apps whose decisions are recorded.
    var recordedApps: @Sendable () -> Set<AppID> = { [] }

    /// Decides the due notifications in one transaction, and claims those that are released. Includes released ones
    /// whose lease has ended without a confirm.
    ///
    /// Any number of processes may run it; each row goes to one process. A row that cannot be read or decided is marked
    /// as dead (``DeadRow``) and does not block the others.
    ///
    /// - Returns: the notifications to publish, and the number of rows processed.
    func release(by ruleSets: RuleSets, most: Int = batch, now: Timestamp) async throws -> (
        released: [HeldItem], taken: Int
    ) {
        let isDue = HeldStore.isDue(now)
        let due: SQL = "WHERE \(isDue) ORDER BY held.due_at LIMIT \(most)"
        let parts = try await Outage.ofDatabase {
            try await isolatingRows(
                pool, logger, batch: { try await release(due, by: ruleSets, now: now) },
                keys: { try await pool.query("SELECT held.notification FROM rules.held \(due)").column(UUID.self) },
                alone: { key in
                    try await release("WHERE held.notification = \(key) AND \(isDue)", by: ruleSets, now: now)
                },
                dead: { HeldStore.dead($0, of: nil, .failed) })
        }
        return (parts.flatMap(\.released), parts.reduce(0) { $0 + $1.taken })
    }

    private func release(
        _ which: SQL, by ruleSets: RuleSets, now: Timestamp
    ) async throws -> (released: [HeldItem], taken: Int) {
        try await pool.transaction { transaction in
            let rows = try await transaction.query(HeldStore.select(which))
            var items: [HeldItem] = []
            var dead: [DeadRow] = []
            // Recipients share a rendered notification. Decodes each once.
            var renderedNotifications: [UUID: RenderedNotification] = [:]
            for row in rows {
                let key = try row.decode(UUID.self, at: 0)
                do {
                    let item = try HeldItem(row, known: renderedNotifications)
                    renderedNotifications[item.rendered.id] = item.rendered
                    items.append(item)
                } catch {
                    dead.append(HeldStore.dead(key, of: try? row.decode(String.self, at: 1), .unreadable))
                }
            }
            try await transaction.markDead(dead, logger)
            DueAge.held.record(oldest: items.compactMap(\.wasDueAt).min(), now: now)
            guard !items.isEmpty else { return ([], rows.count) }
            items.sort(by: HeldItem.precedes)
            try await releaseOrHold(&items, by: ruleSets, transaction, now: now)
            return (items.filter { $0.leaving != nil }, rows.count)
        }
    }

    /// Marks notifications as dead that no message can carry.
    func markDead(_ notifications: [UUID], of app: AppID) async throws {
        try await Outage.ofDatabase {
            try await pool.markDead(notifications.map { HeldStore.dead($0, of: app.rawValue, .unsendable) }, logger)
        }
    }

    /// Deletes notifications that the broker has confirmed.
    func forget(_ published: [UUID]) async throws {
        try await settlingRows(published, pool, logger, dead: { HeldStore.dead($0, of: nil, .failed) }) { published in
            "DELETE FROM rules.held WHERE notification = ANY(\(published)) AND leaving IS NOT NULL"
        }
    }

    private static func dead(_ notification: UUID, of app: String?, _ reason: DeadRow.Reason) -> DeadRow {
        DeadRow(table: .held, app: app, key: [notification.uuidString.lowercased()], reason: reason)
    }

    private func releaseOrHold(
        _ items: inout [HeldItem], by ruleSets: RuleSets, _ transaction: PostgresTransaction, now: Timestamp
    ) async throws {
        let waiting = items.indices.filter { items[$0].leaving == nil }
        let rules = Dictionary(waiting.map { ($0, ruleSets.rule(of: items[$0].rendered)) }) { first, _ in first }
        func keys(_ wanted: (Rule, AppDefaults) -> Bool) -> [PersonKey] {
            waiting.filter { index in rules[index].flatMap { $0 }.map { wanted($0.rule, $0.set.defaults) } ?? false }
                .map { items[$0].person }
        }
        let charged = keys { $0.policy.isCapped || $1.isCritical($0.policy) }
        var people = try await transaction.people(
            settingsOf: waiting.map { items[$0].person }, capsOf: charged,
            presenceOf: keys { rule, _ in rule.policy.presence != .ignored }, now: now, logger)
        var writes = DecisionWrites(decidedAt: now)
        var recorder = DecisionRecorder(recordedApps(), now: now)
        let states = waiting.filter { rules[$0].flatMap { $0 }?.rule.channels?.role == .updates }
        let newest = try await transaction.newestStates(of: states.compactMap { items[$0].itemKey }, now: now)
        for index in waiting {
            if states.contains(index), items[index].isOvertaken(newest) {
                items[index].drop(.replaced, &writes)
                continue
            }
            recorder.add(items[index], by: rules[index].flatMap { $0 }, people)
            items[index].release(by: rules[index].flatMap { $0 }, &people, &writes, spread: spread)
        }
        for key in Set(charged) { writes.capHistory[key] = people[key]?.capHistory }
        try await transaction.keep(writes, people, now: now)
        try await transaction.keep(recorder.recordings)
        try await count(&items, rules, transaction)
        try await transaction.execute(HeldStore.update(items, now: now))
        let over = items.filter(\.isOver).map(\.recipient.notification)
        if !over.isEmpty {
            try await transaction.execute("DELETE FROM rules.held WHERE notification = ANY(\(over))")
        }
    }

    /// Sets the present badge on released notifications, instead of the one from when they were held.
    private func count(
        _ items: inout [HeldItem], _ rules: [Int: (rule: Rule, set: RuleSet)?], _ transaction: PostgresTransaction
    ) async throws {
        let counting = items.indices.filter { index in
            items[index].leaving != nil && rules[index].flatMap { $0 }?.rule.how.countsUnread == true
        }
        let unread = try await transaction.unread(Set(counting.map { items[$0].person }))
        for index in counting { items[index].recipient.badge = Content.badge(unread[items[index].person] ?? 0) }
    }

    private static func isDue(_ now: Timestamp) -> SQL { "held.due_at <= \(now.date) AND held.dead_at IS NULL" }

    /// - Parameter which: a `WHERE` clause, with its order and its limit.
    private static func select(_ which: SQL) -> SQL {
        """
        SELECT held.notification, held.app, held.user_id, held.saying, held.event, held.badge, held.since, held.leaving,
            held.quiet_holds, held.step, held.kind, held.item, held.said_at, held.in_inbox, held.entry::text,
            saying.rule, saying.lane, saying.content::text, saying.mutes, saying.expires_at, saying.delivery,
            saying.correlation, saying.traceparent, saying.preview::text, saying.devices::text, saying.scope, held.due_at,
            saying.is_to_channels
        FROM rules.held JOIN rules.saying ON saying.id = held.saying
        \(which) FOR UPDATE OF held SKIP LOCKED
        """
    }

    private static func update(_ items: [HeldItem], now: Timestamp) -> SQL {
        """
        UPDATE rules.held SET badge = new.badge, due_at = new.due_at, leaving = new.leaving, quiet_holds = new.quiet_holds, step = new.step,
            in_inbox = true
        FROM unnest(
            \(items.map(\.recipient.notification)), \(items.map { ($0.dueAt ?? now + lease).date }),
            \(items.map { $0.leaving?.word }), \(items.map(\.quietHolds)), \(items.map(\.step)),
            \(items.map(\.recipient.badge))
        ) AS new (notification, due_at, leaving, quiet_holds, step, badge) WHERE held.notification = new.notification
        """
    }
}
