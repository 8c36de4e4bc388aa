import FoundationEssentials
import Logging
import Postgres
import PushProtocol
import RuleEngine

/// Reads new inbox items for streams.
struct InboxFeedStore: Sendable {
    /// The maximum age of an item in a stream. Older items are in the list of the inbox.
    static let horizon = Duration.seconds(3600)
    /// How long an item waits for older transactions that still run. Transactions of this service are shorter. Others
    /// in the same database cluster may be longer, but write no inbox items.
    static let patience = Duration.seconds(5)
    /// The maximum number of items per listener and query.
    static let batch = 20

    let pool: PostgresPool
    var logger = Logger.rules

    /// A stream's user and position.
    struct Listener: Sendable {
        var person: PersonKey
        var after: FeedCursor
        /// Older items are left out, whatever their position.
        var since: Timestamp
    }

    struct Item: Sendable {
        var item: InboxItem
        var place: FeedCursor
    }

    /// The position of a stream that starts now. Items of running transactions come after it.
    func startPosition() async throws -> FeedCursor {
        let text = try await pool.query("SELECT pg_snapshot_xmin(pg_current_snapshot())::text").single(String.self)
        return FeedCursor(before: UInt64(text) ?? 0)
    }

    /// Reads the new items of each listener, by the listener's index and in order, and their users' settings and
    /// presence.
    ///
    /// An item is returned once no older transaction runs, because an older transaction could still add an item before
    /// it. An item older than ``patience`` does not wait (decision 42). An item that cannot be read is marked as dead
    /// (``DeadRow``) and does not block the others.
    func news(
        for listeners: [Listener], now: Timestamp
    ) async throws -> (items: [Int: [Item]], people: [PersonKey: Person]) {
        guard !listeners.isEmpty else { return ([:], [:]) }
        return try await pool.transaction { transaction in
            let rows = try await transaction.query(Self.query(listeners, now: now))
            var items: [Int: [Item]] = [:]
            var dead: [DeadRow] = []
            for row in rows {
                let index = try row.decode(Int.self, at: "listener")
                let app = listeners[index].person.app
                let number = UInt64(try row.decode(String.self, at: "transaction")) ?? 0
                do {
                    let item = try InboxItem(row, app: app)
                    items[index, default: []].append(
                        Item(item: item, place: FeedCursor(transaction: number, id: item.id)))
                } catch {
                    dead.append(try InboxStore.dead(row, of: app))
                }
            }
            try await transaction.markDead(dead, logger)
            let keys = items.keys.map { listeners[$0].person }
            guard !keys.isEmpty else { return ([:], [:]) }
            return (
                items, try await transaction.people(settingsOf: keys, capsOf: [], presenceOf: keys, now: now, logger)
            )
        }
    }

    private static func query(_ listeners: [Listener], now: Timestamp) -> SQL {
        let settled = now - patience
        return """
            SELECT \(InboxStore.columns), inbox.written::text AS transaction, listener.index AS listener
            FROM unnest(
                \(Array(listeners.indices)), \(listeners.map(\.person.app.rawValue)),
                \(listeners.map(\.person.user.rawValue)), \(listeners.map { "\($0.after.transaction)" })::xid8[],
                \(listeners.map(\.after.id)), \(listeners.map(\.since.date))
            ) AS listener (index, app, user_id, written, notification, since)
            CROSS JOIN LATERAL (
                SELECT * FROM rules.inbox
                WHERE inbox.app = listener.app AND inbox.user_id = listener.user_id AND inbox.at > listener.since
                    AND inbox.read_at IS NULL AND inbox.dead_at IS NULL
                    AND (inbox.written < pg_snapshot_xmin(pg_current_snapshot()) OR inbox.at < \(settled.date))
                    AND inbox.written >= listener.written
                    AND (inbox.written > listener.written OR inbox.notification > listener.notification)
                ORDER BY inbox.written, inbox.notification LIMIT \(batch)
            ) AS inbox JOIN rules.saying ON saying.id = inbox.saying
            ORDER BY listener.index, inbox.written, inbox.notification
            """
    }
}
