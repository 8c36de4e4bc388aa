import FoundationEssentials
import Logging
import Messaging
import Postgres
import PushProtocol
import RuleLanguage
import ServiceConnections

/// The broadcast channels of live surfaces: a pool of ready ones, and those that surfaces use.
///
/// A row without an answer of the APNs sender is due again. A row whose surface has ended is due once phones that were
/// offline had time to get the end. So a row without a surface in progress is an orphan for a limited time.
struct ChannelStore: Sendable {
    /// The number of unused channels for each app and environment.
    static let ready = 4
    /// The number of unused channels above which further ones are deleted. More come from repeated answers.
    static let surplus = 8
    /// The maximum number of requests that one call claims.
    static let batch = 50
    /// The time after which an unanswered request is repeated.
    static let patience = Duration.seconds(60)
    /// The time after which a refused request is repeated.
    static let refusalPause = Duration.seconds(3600)
    /// The time from the end of a surface to the deletion of its channel: as long as APNs keeps the end for phones that
    /// are offline.
    static let grace = SurfaceChannelRole.storage

    let pool: PostgresPool
    var logger = Logger.rules

    /// A request to the APNs sender.
    struct Request: Hashable, Sendable {
        var id: UUID
        var app: AppID
        var environment: ProviderEnvironment
        var operation: ChannelRequest.Operation
    }

    /// Adds requests for channels until each environment has enough unused ones, and ends unused channels that no rule
    /// needs, or that are too many. One process at a time does it; others skip it.
    func refill(_ wanted: [AppID: Set<ProviderEnvironment>], now: Timestamp) async throws {
        let keys = wanted.flatMap { app, environments in environments.map { (app.rawValue, $0.rawValue) } }
        try await Outage.ofDatabase {
            try await pool.transaction { transaction in
                guard try await transaction.query(AdvisoryLock.channels.attempt).single(Bool.self) else { return }
                try await transaction.execute(Self.dropUnneeded(keys))
                try await transaction.execute(Self.endUnneeded(keys, now: now))
                try await transaction.execute(Self.endSurplus(now: now))
                try await transaction.execute(Self.add(keys, now: now))
            }
        }
    }

    /// Claims the requests that are due. A row that cannot be read or claimed is marked as dead (``DeadRow``) and does not
    /// block the others.
    func take(now: Timestamp) async throws -> [Request] {
        let isDue: SQL = "due_at <= \(now.date) AND dead_at IS NULL"
        let due: SQL = "WHERE \(isDue) ORDER BY due_at LIMIT \(Self.batch)"
        let taken = try await Outage.ofDatabase {
            try await isolatingRows(
                pool, logger, batch: { try await take(due, now: now) },
                keys: { try await pool.query("SELECT id FROM rules.channel \(due)").column(UUID.self) },
                alone: { try await take("WHERE \(isDue) AND id = \($0)", now: now) },
                dead: { Self.dead($0, of: nil, .failed) })
        }
        return taken.flatMap(\.self)
    }

    private func take(_ which: SQL, now: Timestamp) async throws -> [Request] {
        try await pool.transaction { transaction in
            let rows = try await transaction.query(Self.claim(which, now: now))
            let (requests, dead) = try rows.readable(Request.init) { row in
                Self.dead(try row.decode(at: 0), of: try row.decode(at: 1), .unreadable)
            }
            try await transaction.markDead(dead, logger)
            return requests
        }
    }

    func markDead(_ request: Request) async throws {
        try await Outage.ofDatabase {
            try await pool.markDead([Self.dead(request.id, of: request.app.rawValue, .unsendable)], logger)
        }
    }

    /// Stores answers of the APNs sender. A request that was answered twice leaves another unused channel.
    func keep(_ answers: [ChannelAnswer], now: Timestamp) async throws {
        try await Outage.ofDatabase {
            try await pool.transaction { transaction in
                for answer in answers {
                    switch answer.result {
                    case .created(let channel):
                        if try await transaction.execute(Self.complete(answer, channel)) == 0 {
                            try await transaction.execute(Self.insert(answer, channel))
                        }
                    case .deleted:
                        try await transaction.execute(
                            "DELETE FROM rules.channel WHERE id = \(answer.id) AND ends_at IS NOT NULL")
                    case .refused:
                        try await transaction.execute(
                            """
                            UPDATE rules.channel SET due_at = \((now + Self.refusalPause).date)
                            WHERE id = \(answer.id) AND due_at IS NOT NULL
                            """)
                    }
                }
            }
        }
    }

    private static func dead(_ id: UUID, of app: String?, _ reason: DeadRow.Reason) -> DeadRow {
        DeadRow(table: .channel, app: app, key: [id.uuidString.lowercased()], reason: reason)
    }
}

extension ChannelStore.Request {
    fileprivate init(row: PostgresRow) throws {
        let channel = try row.decode(ChannelID?.self, at: 3)
        self.init(
            id: try row.decode(at: 0), app: try row.decode(at: 1), environment: try row.decode(at: 2),
            operation: channel.map { .delete($0) } ?? .create)
    }
}

// MARK: - Statements

extension ChannelStore {
    private static let isUnused: SQL = "channel.item IS NULL AND channel.ends_at IS NULL"

    private static func wanted(_ keys: [(String, String)]) -> SQL {
        "SELECT app, environment FROM unnest(\(keys.map(\.0)), \(keys.map(\.1))) AS wanted (app, environment)"
    }

    /// Deletes requests for channels that no rule needs. A late answer adds an unused channel.
    private static func dropUnneeded(_ keys: [(String, String)]) -> SQL {
        """
        DELETE FROM rules.channel
        WHERE \(isUnused) AND channel.channel IS NULL AND (app, environment) NOT IN (\(wanted(keys)))
        """
    }

    private static func endUnneeded(_ keys: [(String, String)], now: Timestamp) -> SQL {
        """
        UPDATE rules.channel SET ends_at = \(now.date), due_at = \(now.date)
        WHERE \(isUnused) AND channel.channel IS NOT NULL AND (app, environment) NOT IN (\(wanted(keys)))
        """
    }

    private static func endSurplus(now: Timestamp) -> SQL {
        """
        UPDATE rules.channel SET ends_at = \(now.date), due_at = \(now.date)
        WHERE id IN (
            SELECT id FROM (
                SELECT id, row_number() OVER (PARTITION BY app, environment ORDER BY id) AS place
                FROM rules.channel WHERE \(isUnused) AND channel.channel IS NOT NULL
            ) AS unused WHERE place > \(surplus)
        ) AND \(isUnused)
        """
    }

    private static func add(_ keys: [(String, String)], now: Timestamp) -> SQL {
        """
        INSERT INTO rules.channel (id, app, environment, due_at)
        SELECT gen_random_uuid(), app, environment, \(now.date) FROM (\(wanted(keys))) AS wanted,
            LATERAL generate_series(1, \(ready) - (
                SELECT count(*) FROM rules.channel
                WHERE \(isUnused) AND (channel.app, channel.environment) = (wanted.app, wanted.environment)))
        """
    }

    private static func claim(_ which: SQL, now: Timestamp) -> SQL {
        """
        UPDATE rules.channel SET due_at = \((now + patience).date)
        WHERE id IN (SELECT id FROM rules.channel \(which) FOR UPDATE SKIP LOCKED)
        RETURNING id, app, environment, channel
        """
    }

    private static func complete(_ answer: ChannelAnswer, _ channel: ChannelID) -> SQL {
        """
        UPDATE rules.channel SET channel = \(channel.rawValue), due_at = NULL
        WHERE id = \(answer.id) AND channel IS NULL AND NOT EXISTS (
            SELECT FROM rules.channel AS known
            WHERE (known.app, known.environment, known.channel)
                = (channel.app, channel.environment, \(channel.rawValue)))
        """
    }

    private static func insert(_ answer: ChannelAnswer, _ channel: ChannelID) -> SQL {
        """
        INSERT INTO rules.channel (id, app, environment, channel)
        VALUES (gen_random_uuid(), \(answer.app.rawValue), \(answer.environment.rawValue), \(channel.rawValue))
        ON CONFLICT DO NOTHING
        """
    }
}
