package import FoundationEssentials
package import Postgres
package import PushProtocol
package import Logging
import Messaging
import ServiceKit

/// The newest states of live surfaces, and the tokens that phones reported since.
///
/// A state is committed before the handler reads the registrations again, and a token before the worker reads the states.
/// So one of the two finds the other, in any order.
package struct LiveStateStore: Sendable {
    /// How long a state is kept: iOS ends a Live Activity after eight hours, and shows it for four more.
    package static let lifetime = Duration.seconds(12 * 3600)
    /// Maximum tokens of one call.
    package static let batch = 200

    private let database: PostgresPool
    private let logger: Logger

    package init(_ database: PostgresPool, logger: Logger = .registry) {
        self.database = database
        self.logger = logger
    }

    /// A reported token whose Live Activity has a state.
    package struct Late: Hashable, Sendable {
        package var device: UUID
        package var state: LiveState
    }

    /// Stores states that a phone may still need. An older state does not replace a newer one, and no state of the same
    /// second replaces an end.
    package func keep(_ states: [LiveState]) async throws {
        guard !states.isEmpty else { return }
        // A statement can change a row once.
        var newest: [Key: LiveState] = [:]
        for state in states {
            let key = Key(user: state.user, scope: state.scope)
            if let known = newest[key], known.isNewer(than: state) { continue }
            newest[key] = state
        }
        let rows = newest.values.sorted { $0.order < $1.order }
        let messages = try rows.map { state throws(WireError) in try WireCoding.text(state.message) }
        try await database.execute(
            """
            INSERT INTO registry.live_state AS s (app, user_id, scope, notification, message, at, is_end)
            SELECT n.app, n.user_id, n.scope, n.notification, n.message, n.at, n.is_end FROM unnest(
                \(rows.map(\.user.app.rawValue))::text[], \(rows.map(\.user.user.rawValue))::text[],
                \(rows.map(\.scope))::text[], \(rows.map(\.notification))::uuid[], \(messages)::text[],
                \(rows.map(\.at))::bigint[], \(rows.map(\.isEnd))::boolean[], \(rows.map(\.isAwaited))::boolean[]
            ) AS n (app, user_id, scope, notification, message, at, is_end, is_awaited)
            WHERE n.is_awaited OR EXISTS (
                SELECT FROM registry.live_state k WHERE (k.app, k.user_id, k.scope) = (n.app, n.user_id, n.scope))
            ORDER BY n.app, n.user_id, n.scope
            ON CONFLICT (app, user_id, scope) DO UPDATE SET
                notification = excluded.notification, message = excluded.message, at = excluded.at,
                is_end = excluded.is_end, stored_at = excluded.stored_at
            WHERE (excluded.at, excluded.is_end) >= (s.at, s.is_end)
            """)
    }

    /// Passes reported tokens with a state to `publish`, and deletes the reports once it returns. They stay if it throws.
    ///
    /// - Returns: the number of reports.
    package func drain(publish: @Sendable ([Late]) async throws -> Void) async throws -> Int {
        try await database.transaction { transaction in
            let rows = try await transaction.query(
                """
                SELECT r.id, r.app, r.user_id, r.scope, r.device_id, s.message, s.at, s.is_end
                FROM registry.reported_activity r
                LEFT JOIN registry.live_state s ON (s.app, s.user_id, s.scope) = (r.app, r.user_id, r.scope)
                WHERE r.id IN (
                    SELECT id FROM registry.reported_activity ORDER BY id LIMIT \(Self.batch) FOR UPDATE SKIP LOCKED)
                ORDER BY r.id
                """)
            guard !rows.isEmpty else { return 0 }
            var late: [Late] = []
            for row in rows {
                do { if let found = try Late(row) { late.append(found) } } catch {
                    logger.warning(
                        "The state of a Live Activity is unreadable; the phone gets the next one",
                        metadata: [LogKey.error: "\(error)"])
                }
            }
            if !late.isEmpty { try await publish(late) }
            let ids = try rows.map { row throws(PostgresError) in try row.decode(Int64.self, at: 0) }
            try await transaction.execute("DELETE FROM registry.reported_activity WHERE id = ANY(\(ids)::bigint[])")
            return rows.count
        }
    }

    /// Deletes states that no Live Activity needs any more.
    package func sweep(now: Timestamp) async throws(PostgresError) -> Int {
        try await database.execute("DELETE FROM registry.live_state WHERE stored_at < \((now - Self.lifetime).date)")
    }

    static func erasure(of user: AppUser) -> SQL {
        "DELETE FROM registry.live_state WHERE app = \(user.app.rawValue) AND user_id = \(user.user.rawValue)"
    }

    private struct Key: Hashable {
        var user: AppUser
        var scope: String
    }
}

extension LiveState {
    fileprivate var order: (String, String, String) { (user.app.rawValue, user.user.rawValue, scope) }

    fileprivate func isNewer(than other: LiveState) -> Bool {
        (at, isEnd ? 1 : 0) > (other.at, other.isEnd ? 1 : 0)
    }
}

extension LiveStateStore.Late {
    /// - Returns: `nil` if the activity has no state.
    fileprivate init?(_ row: PostgresRow) throws {
        guard let text = try row.decode(String?.self, at: 5) else { return nil }
        let user = AppUser(app: try row.decode(AppID.self, at: 1), user: try row.decode(UserID.self, at: 2))
        self.init(
            device: try row.decode(UUID.self, at: 4),
            state: LiveState(
                user: user, scope: try row.decode(String.self, at: 3),
                message: try WireCoding.decodeStored(Notification.self, from: text),
                at: try row.decode(Int64.self, at: 6),
                isEnd: try row.decode(Bool.self, at: 7), isAwaited: true))
    }
}
