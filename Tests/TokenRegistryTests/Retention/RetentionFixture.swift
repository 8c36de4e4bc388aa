import Foundation
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RegistryStore

/// Registrations that ended long ago.
enum RetentionFixture {
    typealias Fixture = StoreFixture

    static func ago(_ days: Int) -> Date { Date().addingTimeInterval(-86_400 * Double(days)) }

    /// Moves a registration's end into the past without an event; with `since`, also its registration time.
    static func age(_ claims: [RegistrationRequest], days: Int, since: Int? = nil, _ pool: PostgresPool) async throws {
        try await pool.transaction { transaction in
            try await transaction.execute("SET LOCAL session_replication_role = replica")
            try await transaction.execute(
                """
                UPDATE registry.registration SET state_changed_at = \(ago(days)),
                    ended_at = CASE WHEN ended_at IS NOT NULL THEN \(ago(days)) END,
                    registered_at = coalesce(\(since.map(ago))::timestamptz, registered_at)
                WHERE device_id = ANY (\(claims.map(\.device))::uuid[])
                """)
        }
    }

    /// Sweeps to the end of the table.
    ///
    /// - Parameter now: the time of all steps; `nil`: the current time of each.
    /// - Returns: the number of deleted registrations.
    @discardableResult
    static func sweep(_ pool: PostgresPool, step: Int = 2, now: Timestamp? = nil) async throws -> Int {
        let store = SweepStore(pool, step: step)
        var sum = 0
        while true {
            switch try await store.advance(now: now ?? .now) {
            case .elsewhere: continue
            case .more(_, let deleted): sum += deleted
            case .finished(_, let deleted): return sum + deleted
            }
        }
    }

    /// Walks to the end of the memberships and records. No other process may run steps.
    static func walk(
        _ store: HistoryStore, now: Timestamp? = nil
    ) async throws -> (memberships: Int, records: HistoryStore.Records) {
        var sum = 0
        while true {
            switch try await store.advance(now: now ?? .now) {
            case .elsewhere: Issue.record("no other process runs a step")
            case .more(let count): sum += count
            case .finished(let count, let records): return (sum + count, records)
            }
        }
    }

    static func tokens(_ pool: PostgresPool) async throws -> [String] {
        try await pool.query("SELECT coalesce(token, 'erased ' || user_id) FROM registry.registration ORDER BY 1")
            .map { try $0.decode(String.self, at: 0) }
    }

    static func announced(_ pool: PostgresPool) async throws -> [String] {
        try await pool.query("SELECT past FROM registry.outbox ORDER BY id").map { try $0.decode(String.self, at: 0) }
    }

    /// Waits until a transaction of this database waits for a lock.
    static func waitForBlockedTransaction(_ pool: PostgresPool) async throws {
        try await eventually("a transaction that waits for another") {
            try await pool.query(
                """
                SELECT count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND wait_event_type = 'Lock'
                """
            ).single(Int.self) > 0
        }
    }
}
