import FoundationEssentials
import Postgres
import PushProtocol
import RuleEngine
import RuleLanguage

/// The channels of items whose events a transaction decides. The transaction has the locks of the items.
extension PostgresTransaction {
    /// Takes a ready channel for each surface with many recipients that starts, in each environment in which it has none.
    /// Without a ready one, phones of the environment use tokens.
    func openChannels(for events: [EventCase], now: Timestamp) async throws {
        for event in events {
            for draft in event.drafts {
                guard case .opens? = draft.channels?.role else { continue }
                let groups = Set(draft.groupReferences.map { GroupKey(app: event.record.app, group: $0.group) })
                let count = draft.recipients.count + (try await numberOfMembers(in: groups))
                guard let opening = draft.opening(recipients: count, event.record) else { continue }
                for environment in opening.environments.sorted() {
                    try await execute(ChannelRows.take(opening, environment, now: now))
                }
            }
        }
    }

    /// The channels of surfaces that have not ended, by item.
    func openChannels(of items: [ItemKey], now: Timestamp) async throws -> [ItemKey: [OpenChannel]] {
        var open: [ItemKey: [OpenChannel]] = [:]
        guard !items.isEmpty else { return open }
        for row in try await query(ChannelRows.open(items, now: now)) {
            let item = ItemKey(app: try row.decode(AppID.self, at: 0), item: try row.decode(String.self, at: 1))
            open[item, default: []].append(
                OpenChannel(
                    channel: try row.decode(ChannelID.self, at: 3),
                    environment: try row.decode(ProviderEnvironment.self, at: 2),
                    startedAt: Timestamp(try row.decode(Date.self, at: 4)),
                    newestAt: Timestamp(try row.decode(Date.self, at: 5))))
        }
        return open
    }

    /// Makes channels the recipients of notifications to channels. Drops those without a channel. Stores the
    /// newest state of each surface, and when it ends.
    ///
    /// - Parameter known: returns the channels of an event that was decided before; `nil` for a new event.
    func addressChannels(
        _ events: inout [EventCase], now: Timestamp, known: (EventCase, NotificationDraft) -> [UserID]?
    ) async throws {
        let items = events.flatMap { $0.drafts.filter(\.isToChannels).compactMap(\.channelItem) }
        var open = try await openChannels(of: Array(Set(items)), now: now)
        for index in events.indices {
            let event = events[index]
            var drafts: [NotificationDraft] = []
            for draft in event.drafts {
                guard let role = draft.channels?.role, role.isBroadcast, let item = draft.channelItem else {
                    drafts.append(draft)
                    continue
                }
                let occurredAt = event.record.occurredAt
                let decided = known(event, draft)
                let channels = open[item, default: []].filter { $0.takes(role, occurredAt: occurredAt) }
                let labels = decided ?? channels.compactMap(\.label)
                guard !labels.isEmpty else { continue }
                drafts.append(draft.addressed(to: labels))
                guard decided == nil else { continue }
                if role == .updates {
                    open[item] = open[item]?.map { channels.contains($0) ? $0.noting(occurredAt) : $0 }
                }
                try await execute(ChannelRows.note(item, role, occurredAt, now: now))
            }
            events[index].drafts = drafts
        }
    }

    /// The time of the newest state of each surface that has not ended.
    func newestStates(of items: [ItemKey], now: Timestamp) async throws -> [ItemKey: Timestamp] {
        try await openChannels(of: items, now: now).compactMapValues { $0.map(\.newestAt).max() }
    }

    /// Ends the channels of surfaces whose start is revoked. A repetition returns the same channels.
    func endChannels(of items: [ItemKey], now: Timestamp) async throws -> [ItemKey: [UserID]] {
        var ended: [ItemKey: [UserID]] = [:]
        for item in items.sorted() {
            for row in try await query(ChannelRows.endAll(item, now: now)) {
                let channel = OpenChannel(
                    channel: try row.decode(at: 0), environment: try row.decode(at: 1), startedAt: now,
                    newestAt: now)
                if let label = channel.label { ended[item, default: []].append(label) }
            }
            ended[item]?.sort { $0.rawValue < $1.rawValue }
        }
        return ended
    }
}

private enum ChannelRows {
    static func take(_ opening: ChannelOpening, _ environment: ProviderEnvironment, now: Timestamp) -> SQL {
        let (app, item) = (opening.item.app.rawValue, opening.item.item)
        let endsAt = max(now, opening.startedAt) + opening.endsAfter
        return """
            UPDATE rules.channel SET item = \(item), started_at = \(opening.startedAt.date),
                newest_at = \(opening.startedAt.date), ends_at = \(endsAt.date),
                due_at = \((endsAt + ChannelStore.grace).date)
            WHERE id = (
                SELECT id FROM rules.channel
                WHERE app = \(app) AND environment = \(environment.rawValue) AND item IS NULL AND ends_at IS NULL
                    AND channel.channel IS NOT NULL AND dead_at IS NULL
                ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
            ) AND NOT EXISTS (
                SELECT FROM rules.channel AS other
                WHERE other.app = \(app) AND other.item = \(item) AND other.environment = \(environment.rawValue)
                    AND other.ends_at > \(now.date))
            """
    }

    static func open(_ items: [ItemKey], now: Timestamp) -> SQL {
        """
        SELECT channel.app, channel.item, channel.environment, channel.channel, channel.started_at, channel.newest_at
        FROM rules.channel JOIN unnest(\(items.map(\.app.rawValue)), \(items.map(\.item))) AS wanted (app, item)
            ON (channel.app, channel.item) = (wanted.app, wanted.item)
        WHERE channel.ends_at > \(now.date) AND channel.dead_at IS NULL
        ORDER BY channel.environment, channel.channel
        """
    }

    /// Stores what an event of the surface means for its channels.
    static func note(_ item: ItemKey, _ role: SurfaceChannelRole, _ occurredAt: Timestamp, now: Timestamp) -> SQL {
        let change: SQL =
            switch role {
            case .opens, .updates: "newest_at = greatest(newest_at, \(occurredAt.date))"
            case .ends: "ends_at = \(now.date), due_at = \((now + ChannelStore.grace).date)"
            case .endsLater(let delay): ends(atLeast: max(now, occurredAt) + delay)
            }
        return """
            UPDATE rules.channel SET \(change)
            WHERE app = \(item.app.rawValue) AND item = \(item.item) AND ends_at > \(now.date)
                AND started_at <= \(occurredAt.date)
            """
    }

    private static func ends(atLeast end: Timestamp) -> SQL {
        let dueAt = end + ChannelStore.grace
        return "ends_at = greatest(ends_at, \(end.date)), due_at = greatest(due_at, \(dueAt.date))"
    }

    static func endAll(_ item: ItemKey, now: Timestamp) -> SQL {
        """
        UPDATE rules.channel SET ends_at = least(ends_at, \(now.date)), due_at = \((now + ChannelStore.grace).date)
        WHERE app = \(item.app.rawValue) AND item = \(item.item) AND ends_at > \((now - ChannelStore.grace).date)
            AND dead_at IS NULL
        RETURNING channel, environment
        """
    }
}
