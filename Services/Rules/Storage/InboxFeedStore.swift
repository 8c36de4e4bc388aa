import FoundationEssentials
import Logging
import Postgres
import PushProtocol
import RuleEngine

/// Reads new and removed inbox items for streams.
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

    /// A change of an inbox.
    struct Entry: Sendable {
        var change: Change
        var place: FeedCursor

        enum Change: Sendable {
            case new(InboxItem)
            /// The item with this id is gone, by a revocation or by its user.
            case removed(UUID)
        }
    }

    /// The position of a stream that starts now. Items of running transactions come after it.
    func startPosition() async throws -> FeedCursor {
        let text = try await pool.query("SELECT pg_snapshot_xmin(pg_current_snapshot())::text").single(String.self)
        return FeedCursor(before: UInt64(text) ?? 0)
    }

    /// Reads the new and removed items of each listener, by the listener's index and in order, at most ``batch``. Also
    /// reads their users' settings and presence.
    ///
    /// An item is returned once no older transaction runs, because an older transaction could still add an item before
    /// it. An item older than ``patience`` does not wait (decision 42). An item that cannot be read is marked as dead
    /// (``DeadRow``) and does not block the others.
    func news(
        for listeners: [Listener], now: Timestamp
    ) async throws -> (entries: [Int: [Entry]], people: [PersonKey: Person]) {
        guard !listeners.isEmpty else { return ([:], [:]) }
        return try await pool.transaction { transaction in
            let rows = try await transaction.query(Self.query(listeners, now: now))
            var entries: [Int: [Entry]] = [:]
            var dead: [DeadRow] = []
            for row in rows {
                let index = try row.decode(Int.self, at: "listener")
                let app = listeners[index].person.app
                let number = UInt64(try row.decode(String.self, at: "transaction")) ?? 0
                do {
                    let item = try InboxItem(row, app: app)
                    entries[index, default: []].append(
                        Entry(change: .new(item), place: FeedCursor(transaction: number, id: item.id)))
                } catch {
                    dead.append(try InboxStore.dead(row, of: app))
                }
            }
            try await transaction.markDead(dead, logger)
            for row in try await transaction.query(Self.removals(listeners, now: now)) {
                let id: UUID = try row.decode(at: 1)
                let number = UInt64(try row.decode(String.self, at: 2)) ?? 0
                entries[try row.decode(Int.self, at: 0), default: []].append(
                    Entry(change: .removed(id), place: FeedCursor(transaction: number, id: id)))
            }
            // The first entries of both lists: none between them is missing.
            entries = entries.mapValues { Array($0.sorted { $0.place < $1.place }.prefix(Self.batch)) }
            let keys = entries.keys.map { listeners[$0].person }
            guard !keys.isEmpty else { return ([:], [:]) }
            return (
                entries, try await transaction.people(settingsOf: keys, capsOf: [], presenceOf: keys, now: now, logger)
            )
        }
    }

    private static func query(_ listeners: [Listener], now: Timestamp) -> SQL {
        """
        SELECT \(InboxStore.columns), inbox.written::text AS transaction, listener.index AS listener
        FROM \(rows(listeners))
        CROSS JOIN LATERAL (
            SELECT * FROM rules.inbox
            WHERE inbox.read_at IS NULL AND inbox.dead_at IS NULL AND \(isNew("inbox", changedAt: "changed_at", now: now))
            ORDER BY inbox.written, inbox.notification LIMIT \(batch)
        ) AS inbox JOIN rules.saying ON saying.id = inbox.saying
        ORDER BY listener.index, inbox.written, inbox.notification
        """
    }

    private static func removals(_ listeners: [Listener], now: Timestamp) -> SQL {
        """
        SELECT listener.index, removal.notification, removal.written::text
        FROM \(rows(listeners))
        CROSS JOIN LATERAL (
            SELECT * FROM rules.inbox_removal WHERE \(isNew("inbox_removal", now: now))
            ORDER BY written, notification LIMIT \(batch)
        ) AS removal
        ORDER BY listener.index, removal.written, removal.notification
        """
    }

    private static func rows(_ listeners: [Listener]) -> SQL {
        """
        unnest(
            \(Array(listeners.indices)), \(listeners.map(\.person.app.rawValue)),
            \(listeners.map(\.person.user.rawValue)), \(listeners.map { "\($0.after.transaction)" })::xid8[],
            \(listeners.map(\.after.id)), \(listeners.map(\.since.date))
        ) AS listener (index, app, user_id, written, notification, since)
        """
    }

    /// A condition on a table for rows after the listener's position that no older transaction can precede.
    ///
    /// - Parameter changedAt: the column with the time of the last change of a row.
    private static func isNew(_ table: SQL, changedAt: SQL = "at", now: Timestamp) -> SQL {
        """
        \(table).app = listener.app AND \(table).user_id = listener.user_id
            AND (\(table).at > listener.since OR \(table).\(changedAt) > listener.since)
            AND (\(table).written < pg_snapshot_xmin(pg_current_snapshot())
                OR coalesce(\(table).\(changedAt), \(table).at) < \((now - patience).date))
            AND \(table).written >= listener.written
            AND (\(table).written > listener.written OR \(table).notification > listener.notification)
        """
    }
}

extension InboxFeedStore {
    /// A statement part that reports removed items to streams, those in the common table expression `gone`.
    static func noteRemovals(now: Timestamp) -> SQL {
        """
        INSERT INTO rules.inbox_removal (notification, app, user_id, at)
        SELECT notification, app, user_id, \(now.date)::timestamptz FROM gone
        ON CONFLICT DO NOTHING
        """
    }
}
