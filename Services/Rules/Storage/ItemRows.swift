import FoundationEssentials
import Postgres
import PushProtocol
import RuleEngine
import RuleLanguage

extension PostgresTransaction {
    /// Withdraws held and gathered notifications about items that the events report as done, or revoke. Stores the
    /// revocations for ``NotificationRevoker``. Locks all items of the events until the transaction ends, so that
    /// concurrent decisions about an item see each other.
    func takeBack(_ events: [EventCase], now: Timestamp) async throws {
        let withdrawals = ItemWithdrawal.all(of: events)
        let locked = Set(withdrawals.map(\.item)).union(events.flatMap(\.items))
        guard !locked.isEmpty else { return }
        try await lock(locked)
        try await keepItems(of: events)
        guard !withdrawals.isEmpty else { return }
        let done = withdrawals.filter { $0.revocation == nil }
        if !done.isEmpty { try await execute(ItemRows.remember(done)) }
        try await keepRevocations(withdrawals)
        try await execute(ItemRows.withdraw(withdrawals, now: now))
        try await execute(ItemRows.remove(withdrawals, now: now))
    }

    /// Withdraws a user's held and gathered notifications about items that the user's receipts completed.
    ///
    /// - Parameter done: the time of the receipt of each item.
    func finish(_ done: [ItemKey: Timestamp], of user: UserID, now: Timestamp) async throws {
        guard !done.isEmpty else { return }
        let withdrawals = done.sorted { $0.key < $1.key }
            .map { ItemWithdrawal(item: $0.key, until: $0.value, doneBy: user) }
        try await lock(Set(done.keys))
        try await execute(ItemRows.rememberForUser(withdrawals))
        try await execute(ItemRows.withdraw(withdrawals, now: now))
        try await execute(ItemRows.remove(withdrawals, now: now))
    }

    /// Locks items until the transaction ends, so that decisions about them come before or after.
    func lock(_ items: Set<ItemKey>) async throws { _ = try await query(ItemRows.lock(items.sorted())) }

    /// Drops held updates of live surfaces.
    ///
    /// - Returns: the number of dropped notifications.
    func withdrawUpdates(_ withdrawals: [ItemWithdrawal], now: Timestamp) async throws -> Int {
        try await execute(ItemRows.withdraw(withdrawals, now: now))
    }

    /// Reads the state of the items of new events. Drops older held notifications that the events replace.
    func news(of events: [EventCase], now: Timestamp) async throws -> ItemState {
        var news = ItemState()
        let keys = Set(events.flatMap(\.items)).sorted()
        guard !keys.isEmpty else { return news }
        for row in try await query(ItemRows.obsolete(keys)) {
            let key = ItemKey(app: try row.decode(AppID.self, at: 0), item: try row.decode(String.self, at: 1))
            let moment = Timestamp(try row.decode(Date.self, at: 2))
            if let user = try row.decode(UserID?.self, at: 5) {
                news.doneByUser[ItemState.UserItem(item: key, user: user)] = moment
            } else if try row.decode(Bool.self, at: 3) {
                news.revoked.revoke(key, try row.decode(UserID?.self, at: 4), until: moment)
            } else {
                news.done[key] = moment
            }
        }
        var latest: [ItemState.Slot: Timestamp] = [:]
        for event in events {
            for draft in event.drafts where draft.replacement == nil {
                guard let item = draft.item else { continue }
                for recipient in draft.recipients {
                    let slot = ItemState.Slot(item: item, rule: draft.rendered.rule, user: recipient.user)
                    latest[slot] = max(latest[slot] ?? event.record.occurredAt, event.record.occurredAt)
                }
            }
        }
        var replaced: [UUID] = []
        for row in try await query(ItemRows.waiting(keys)) {
            let item = ItemKey(app: try row.decode(AppID.self, at: 0), item: try row.decode(String.self, at: 1))
            let slot = ItemState.Slot(
                item: item, rule: try row.decode(String.self, at: 2), user: try row.decode(UserID.self, at: 3))
            let saidAt = Timestamp(try row.decode(Date.self, at: 4))
            guard let new = latest[slot] else { continue }
            if saidAt > new {
                news.waiting[slot] = saidAt
            } else {
                replaced.append(try row.decode(UUID.self, at: 5))
                let dueAt = Timestamp(try row.decode(Date.self, at: 6))
                if dueAt <= now { news.overdue[slot] = dueAt }
            }
        }
        if !replaced.isEmpty { try await execute(ItemRows.replace(replaced, now: now)) }
        return news
    }
}

private enum ItemRows {
    private static func table(_ withdrawals: [ItemWithdrawal]) -> SQL {
        """
        unnest(
            \(withdrawals.map(\.item.app.rawValue)), \(withdrawals.map(\.item.item)), \(withdrawals.map(\.until.date)),
            \(withdrawals.map(\.onlyUser?.rawValue)), \(withdrawals.map(\.reason.rawValue))
        ) AS new (app, item, at, only_user, reason)
        """
    }

    private static func table(_ keys: [ItemKey]) -> SQL {
        "unnest(\(keys.map(\.app.rawValue)), \(keys.map(\.item))) AS new (app, item)"
    }

    /// Locks items until the transaction ends, in key order, so that two batches do not deadlock.
    static func lock(_ keys: [ItemKey]) -> SQL {
        """
        SELECT pg_advisory_xact_lock(key) FROM (
            SELECT DISTINCT hashtextextended(app || '/' || item, 0) AS key FROM \(table(keys)) ORDER BY key OFFSET 0
        ) AS keys
        """
    }

    /// - Parameter done: with different items.
    static func remember(_ done: [ItemWithdrawal]) -> SQL {
        """
        INSERT INTO rules.done (app, item, at) SELECT app, item, at FROM \(table(done)) ORDER BY app, item
        ON CONFLICT (app, item) DO UPDATE SET at = greatest(done.at, EXCLUDED.at)
        """
    }

    /// - Parameter done: with different items, each of one user.
    static func rememberForUser(_ done: [ItemWithdrawal]) -> SQL {
        """
        INSERT INTO rules.done_by (app, item, user_id, at)
        SELECT app, item, only_user, at FROM \(table(done)) ORDER BY app, item
        ON CONFLICT (app, item, user_id) DO UPDATE SET at = greatest(done_by.at, EXCLUDED.at)
        """
    }

    static func withdraw(_ withdrawals: [ItemWithdrawal], now: Timestamp) -> SQL {
        """
        WITH \(DroppedRows.held(
            where: """
                (held.app, held.item) = (new.app, new.item) AND held.said_at <= new.at
                    AND coalesce(held.user_id = new.only_user, true)
                """,
            joining: ", \(table(withdrawals))", reason: "new.reason"))
        \(DroppedRows.decideHeld(now: now))
        """
    }

    static func remove(_ withdrawals: [ItemWithdrawal], now: Timestamp) -> SQL {
        """
        WITH found AS (
            SELECT digest_item.ctid AS place, new.reason
            FROM rules.digest_item JOIN \(table(withdrawals)) USING (app, item)
            WHERE digest_item.said_at <= new.at AND coalesce(digest_item.user_id = new.only_user, true)
            ORDER BY digest_item.app, digest_item.user_id, digest_item.bucket, digest_item.item FOR UPDATE OF digest_item
        ), gone AS (
            DELETE FROM rules.digest_item USING found WHERE digest_item.ctid = found.place
            RETURNING \(DroppedRows.gathered), found.reason
        )
        \(DroppedRows.decideGathered(now: now))
        """
    }

    /// Selects the items that are done or revoked: app, item, time, whether it is revoked, the only user of a
    /// revocation, and the only user of a receipt.
    static func obsolete(_ keys: [ItemKey]) -> SQL {
        """
        WITH new AS (SELECT app, item FROM \(table(keys)))
        SELECT app, item, at, false, NULL::text, NULL::text FROM rules.done JOIN new USING (app, item)
        UNION ALL
        SELECT app, item, at, false, NULL, user_id FROM rules.done_by JOIN new USING (app, item)
        UNION ALL
        SELECT app, item, CASE WHEN is_of_surface THEN \(untilNextStart) ELSE until_at END, true, user_id, NULL
        FROM rules.revocation JOIN new USING (app, item)
        """
    }

    /// The time until which a revoked surface gets no update.
    private static let untilNextStart: SQL = """
        coalesce((
            SELECT min(next.occurred_at) - interval '1 millisecond' FROM rules.event_item AS next
            WHERE next.starts_surface AND next.app = revocation.app AND next.item = revocation.item
                AND next.occurred_at > revocation.until_at
        ), clock_timestamp() + interval '30 days')
        """

    static func waiting(_ keys: [ItemKey]) -> SQL {
        """
        SELECT held.app, held.item, saying.rule, held.user_id, held.said_at, held.notification, held.due_at
        FROM rules.held JOIN \(table(keys)) USING (app, item) JOIN rules.saying ON saying.id = held.saying
        WHERE held.leaving IS NULL ORDER BY held.notification FOR UPDATE OF held
        """
    }

    static func replace(_ notifications: [UUID], now: Timestamp) -> SQL {
        """
        WITH \(DroppedRows.held(where: "held.notification = ANY(\(notifications))", reason: "'replaced'"))
        \(DroppedRows.decideHeld(now: now))
        """
    }
}
