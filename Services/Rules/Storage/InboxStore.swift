import FoundationEssentials
import Logging
import Postgres
import PushProtocol
import RuleEngine
import RuleLanguage

struct InboxStore: Sendable {
    let pool: PostgresPool
    var logger = Logger.rules

    struct Page: Sendable {
        /// The end of the previous page: only older items.
        var before: InboxItem.Place?
        var limit: Int
        var isUnreadOnly = false
        var thread: String?
    }

    /// Lists a page of an inbox, latest first, and whether there are more items. An item that cannot be read is marked
    /// as dead (``DeadRow``), and is hidden until an operator retries it.
    func list(_ person: PersonKey, _ page: Page) async throws -> (items: [InboxItem], isMore: Bool) {
        let before: SQL =
            page.before.map {
                "AND at <= \($0.at.date) AND (at < \($0.at.date) OR notification > \($0.id))"
            } ?? ""
        let unread: SQL = page.isUnreadOnly ? "AND read_at IS NULL" : ""
        let thread: SQL = page.thread.map { "AND thread = \($0)" } ?? ""
        let query: SQL = """
            SELECT \(Self.columns) FROM (
                SELECT * FROM rules.inbox
                WHERE app = \(person.app.rawValue) AND user_id = \(person.user.rawValue) AND dead_at IS NULL
                    \(before) \(unread) \(thread)
                ORDER BY at DESC, notification LIMIT \(page.limit + 1)
            ) AS inbox JOIN rules.saying ON saying.id = inbox.saying ORDER BY inbox.at DESC, inbox.notification
            """
        // Reads a page with a dead item again, without that item.
        for _ in 0..<Self.maximumReads {
            let rows = try await pool.query(query)
            let items = try await readable(rows.prefix(page.limit), of: person)
            if items.count == min(rows.count, page.limit) { return (items, rows.count > page.limit) }
        }
        return ([], false)
    }

    /// The maximum number of reads of a page; after that it counts as empty.
    private static let maximumReads = 10

    /// The items that can be decoded. The others are marked as dead.
    private func readable(_ rows: some Sequence<PostgresRow>, of person: PersonKey) async throws -> [InboxItem] {
        let (items, dead) = try rows.readable({ try InboxItem($0, app: person.app) }) {
            try Self.dead($0, of: person.app)
        }
        try await pool.markDead(dead, logger)
        return items
    }

    /// - Parameter row: begins with ``columns``.
    static func dead(_ row: PostgresRow, of app: AppID) throws(PostgresError) -> DeadRow {
        let notification = try row.decode(UUID.self, at: 0).uuidString.lowercased()
        return DeadRow(table: .inbox, app: app.rawValue, key: [notification], reason: .unreadable)
    }

    /// One item; `nil` if the user has no such item.
    func item(_ id: UUID, of person: PersonKey) async throws -> InboxItem? {
        let rows = try await pool.query(
            """
            SELECT \(Self.columns) FROM rules.inbox JOIN rules.saying ON saying.id = inbox.saying
            WHERE inbox.notification = \(id) AND inbox.app = \(person.app.rawValue)
                AND inbox.user_id = \(person.user.rawValue) AND dead_at IS NULL
            """)
        return try await readable(rows, of: person).first
    }

    /// The number of a user's unread items.
    func unread(_ person: PersonKey) async throws -> Int {
        try await pool.query(Self.countUnread(person)).single()
    }

    /// Marks items as read. Skips read items and items of other users.
    ///
    /// - Returns: the number of items marked, and the number still unread.
    func read(
        _ reading: ReadingBody, by person: PersonKey, clearsShown: Bool = false, now: Timestamp
    ) async throws -> (marked: Int, unread: Int) {
        let which = Self.which(reading, person)
        return try await pool.transaction { transaction in
            let marked = try await transaction.query(Self.mark(which, person, clearsShown: clearsShown, now: now))
                .single(Int.self)
            return (marked, try await transaction.query(Self.countUnread(person)).single())
        }
    }

    /// Deletes an item from the inbox.
    ///
    /// - Returns: whether the item existed.
    func delete(_ id: UUID, of person: PersonKey, now: Timestamp) async throws -> Bool {
        let own: SQL = "notification = \(id) AND app = \(person.app.rawValue) AND user_id = \(person.user.rawValue)"
        return try await pool.query(Self.remove(own, now: now)).single(Int.self) > 0
    }

    /// Deletes items, reports their removal to streams, schedules badge corrections, and returns the number of items.
    ///
    /// - Parameter which: a condition on `rules.inbox`.
    static func remove(_ which: SQL, now: Timestamp) -> SQL {
        """
        WITH gone AS (DELETE FROM rules.inbox WHERE \(which) RETURNING notification, app, user_id, read_at),
            removed AS (\(InboxFeedStore.noteRemovals(now: now))),
            changed AS (SELECT app, user_id FROM gone WHERE read_at IS NULL), noted AS (\(BadgeStore.note(now: now)))
        SELECT count(*) FROM gone
        """
    }

    /// Marks items as read, schedules a badge correction, and returns the number of marked items.
    ///
    /// - Parameters:
    ///   - which: a condition on `rules.inbox` that begins with `AND`; empty: all items.
    ///   - clearsShown: whether the items are removed from the user's devices (``AppDefaults/clearsRead``).
    static func mark(_ which: SQL, _ person: PersonKey, clearsShown: Bool, now: Timestamp) -> SQL {
        """
        WITH changed AS (
            UPDATE rules.inbox SET read_at = \(now.date)
            WHERE app = \(person.app.rawValue) AND user_id = \(person.user.rawValue) AND read_at IS NULL \(which)
            RETURNING notification, app, user_id, saying
        ), noted AS (\(BadgeStore.note(now: now)))\(clearsShown ? ShownCopyRows.clearElsewhere(now: now) : "")
        SELECT count(*) FROM changed
        """
    }

    static func countUnread(_ person: PersonKey) -> SQL {
        """
        SELECT count(*) FROM rules.inbox
        WHERE app = \(person.app.rawValue) AND user_id = \(person.user.rawValue) AND read_at IS NULL AND dead_at IS NULL
        """
    }

    private static func which(_ reading: ReadingBody, _ person: PersonKey) -> SQL {
        switch reading {
        case .items(let ids): "AND notification = ANY(\(ids))"
        case .thread(let thread): "AND thread = \(thread)"
        case .all: ""
        case .until(let id):
            """
            AND (
                SELECT inbox.at < last.at OR inbox.at = last.at AND inbox.notification >= last.notification
                FROM rules.inbox AS last WHERE last.notification = \(id) AND last.app = \(person.app.rawValue)
                    AND last.user_id = \(person.user.rawValue)
            )
            """
        }
    }

    /// The columns for ``InboxItem/init(_:app:)``.
    static let columns: SQL = """
        inbox.notification, inbox.at, inbox.read_at, saying.id, saying.rule, saying.lane, saying.content::text,
        saying.mutes, saying.expires_at, saying.delivery, saying.correlation, saying.traceparent, saying.preview::text,
        saying.devices::text, saying.scope
        """
}

extension InboxItem {
    /// - Parameter row: begins with ``InboxStore/columns``.
    init(_ row: PostgresRow, app: AppID) throws {
        self.init(
            id: try row.decode(UUID.self, at: 0), at: Timestamp(try row.decode(Date.self, at: 1)),
            readAt: try row.decode(Date?.self, at: 2).map(Timestamp.init),
            rendered: try RenderedNotification(row, id: try row.decode(UUID.self, at: 3), app: app, from: 4))
    }
}
