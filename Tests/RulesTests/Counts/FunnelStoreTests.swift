import DecisionLog
import Foundation
import Postgres
import PushProtocol
import Testing

@testable import Rules

/// The steps of notifications, from the service's own tables and a registry's.
@Suite(.timeLimit(.minutes(3))) struct FunnelStoreTests {
    private static let app = AppID(rawValue: "test")!
    private static let start = moment("2026-01-20T00:00:00Z")

    private static func add(
        _ pool: PostgresPool, _ rule: String, _ time: String, answer: String = "push", outcomes: [(UUID, String)] = [],
        receipts: [String] = []
    ) async throws {
        let (event, notification, at) = (UUID(), UUID(), moment(time).date)
        try await pool.execute(
            """
            INSERT INTO rules.event (key, app, source, id, type, rule_set, arrived_at)
            VALUES (\(event), 'test', '/up', \(event.uuidString), 't', \(event), \(at))
            """)
        try await pool.execute(
            """
            INSERT INTO rules.decision (notification, event, rule, user_id, decided_at, answer, reason)
            VALUES (\(notification), \(event), \(rule), 'u', \(at), \(answer), 'wanted')
            """)
        for (device, disposition) in outcomes {
            try await pool.execute(
                """
                INSERT INTO rules.outcome (notification, device, disposition, origin, at)
                VALUES (\(notification), \(device), \(disposition), 'apns', \(at))
                """)
        }
        for what in receipts {
            try await pool.execute(
                "INSERT INTO rules.receipt (notification, what, at) VALUES (\(notification), \(what), \(at))")
        }
    }

    private static func rows(_ pool: PostgresPool, _ property: Funnel.Property) async throws -> [Funnel.Row] {
        try await FunnelStore(pool).funnel(
            by: property, of: app, from: start.date, until: (start + .seconds(2 * 86_400)).date, zone: "Europe/Berlin"
        ).rows
    }

    @Test func `notifications are followed by rule and day`() async throws {
        try await RulesDatabase.withPool { pool in
            let device = UUID()
            try await Self.add(
                pool, "order", "2026-01-20T12:00:00Z", outcomes: [(device, "accepted"), (UUID(), "unregistered")],
                receipts: ["opened"])
            try await Self.add(pool, "order", "2026-01-20T23:30:00Z", answer: "push-quietly", receipts: ["dismissed"])
            try await Self.add(pool, "order", "2026-01-20T12:00:00Z", answer: "drop")
            try await Self.add(pool, "tip", "2026-01-20T12:00:00Z", answer: "inbox")
            // A held notification is not decided on yet.
            try await Self.add(pool, "tip", "2026-01-20T12:00:00Z", answer: "hold")
            try await Self.add(pool, "tip", "2026-01-22T12:00:00Z")
            #expect(
                try await Self.rows(pool, .rule) == [
                    .init(name: "order", counts: [3, 2, 1, 1, 1]), .init(name: "tip", counts: [1, 0, 0, 0, 0]),
                ])
            #expect(
                try await Self.rows(pool, .day) == [
                    .init(name: "2026-01-20", counts: [3, 1, 1, 1, 0]),
                    .init(name: "2026-01-21", counts: [1, 1, 0, 0, 1]),
                ])
        }
    }

    @Test func `pushes to devices are followed by platform and app version`() async throws {
        try await RulesDatabase.withPool { pool in
            // The columns of the registry's table that the query reads.
            try await pool.execute("CREATE SCHEMA registry")
            try await pool.execute(
                "CREATE TABLE registry.registration (device_id uuid PRIMARY KEY, platform text, app_version text)")
            let (phone, tablet) = (UUID(), UUID())
            try await pool.execute(
                """
                INSERT INTO registry.registration
                VALUES (\(phone), 'apple', '4.2'), (\(tablet), 'apple', NULL)
                """)
            try await Self.add(
                pool, "order", "2026-01-20T12:00:00Z",
                outcomes: [(phone, "accepted"), (tablet, "rejected"), (UUID(), "unregistered")])
            try await Self.add(pool, "order", "2026-01-20T13:00:00Z", outcomes: [(phone, "accepted")])
            #expect(
                try await Self.rows(pool, .platform) == [
                    .init(name: "apple", counts: [3, 2, 0, 1]), .init(name: "unknown", counts: [1, 0, 1, 0]),
                ])
            #expect(
                try await Self.rows(pool, .appVersion) == [
                    .init(name: "4.2", counts: [2, 2, 0, 0]), .init(name: "unknown", counts: [2, 0, 1, 1]),
                ])
        }
    }
}
