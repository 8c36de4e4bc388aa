import DecisionLog
import Foundation
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// Counts of a rule's variants, from the service's own tables.
@Suite(.timeLimit(.minutes(3))) struct VariantStoreTests {
    private static let app = AppID(rawValue: "test")!

    /// Writes one decision of a rule about a user, with what became of it.
    private static func add(
        _ pool: PostgresPool, _ rule: String, _ user: String, answer: String = "push", reason: String = "wanted",
        app: AppID = app, accepted: Bool = false, receipts: [String] = [], deadAt: Date? = nil, at: Date
    ) async throws {
        let (event, notification) = (UUID(), UUID())
        try await pool.execute(
            """
            INSERT INTO rules.event (key, app, source, id, type, rule_set, arrived_at)
            VALUES (\(event), \(app.rawValue), '/test', \(event.uuidString), 'tip', \(UUID()), \(at))
            """)
        try await pool.execute(
            """
            INSERT INTO rules.decision (notification, event, rule, user_id, decided_at, answer, reason)
            VALUES (\(notification), \(event), \(rule), \(user), \(at), \(answer), \(reason))
            """)
        if accepted {
            try await pool.execute(
                """
                INSERT INTO rules.outcome (notification, device, disposition, origin, at)
                VALUES (\(notification), \(UUID()), 'accepted', 'apns', \(at))
                """)
        }
        if let deadAt {
            try await pool.execute(
                """
                INSERT INTO rules.outcome (notification, device, disposition, origin, at)
                VALUES (\(notification), \(UUID()), 'unregistered', 'apns', \(deadAt))
                """)
        }
        for what in receipts {
            try await pool.execute(
                "INSERT INTO rules.receipt (notification, what, at) VALUES (\(notification), \(what), \(at))")
        }
    }

    @Test func `each user counts once, with everything that became of the notifications`() async throws {
        try await RulesDatabase.withPool { pool in
            let noon = Date(timeIntervalSince1970: 1_767_268_800)
            let later = noon.addingTimeInterval(60)
            try await Self.add(pool, "tip-a", "u1", accepted: true, receipts: ["opened"], at: noon)
            try await Self.add(pool, "tip-a", "u1", accepted: true, at: later)
            try await Self.add(pool, "tip-a", "u2", answer: "push-quietly", receipts: ["dismissed"], at: noon)
            try await Self.add(pool, "tip-a", "u3", answer: "drop", reason: "type-off", at: noon)
            try await Self.add(pool, "tip-b", "u4", answer: "drop", reason: "hold-out", at: noon)
            // Other rules, times and apps do not count.
            try await Self.add(pool, "other", "u5", at: noon)
            try await Self.add(pool, "tip-a", "u6", at: noon.addingTimeInterval(-1))
            try await Self.add(pool, "tip-a", "u7", at: later.addingTimeInterval(1))
            try await Self.add(pool, "tip-a", "u8", app: AppID(rawValue: "second")!, at: noon)
            for (user, settings) in [
                ("u1", #"{"types": {"tips": {"push": false}}}"#), ("u2", #"{"types": {"tips": true, "news": false}}"#),
                ("u4", #"{"enabled": false}"#),
            ] {
                try await pool.execute(
                    """
                    INSERT INTO rules.person (app, user_id, settings)
                    VALUES (\(Self.app.rawValue), \(user), \(settings)::jsonb)
                    """)
            }
            let figures = try await VariantStore(pool).figures(
                of: ["tip-a", "tip-b", "tip-c"], app: Self.app, type: "tips", from: noon,
                until: later.addingTimeInterval(1))
            #expect(
                figures == [
                    "tip-a": VariantReport.Figures(users: 2, accepted: 1, opened: 1, dismissed: 1, switchedOff: 1),
                    "tip-b": VariantReport.Figures(users: 1, switchedOff: 1),
                ])
            let untyped = try await VariantStore(pool).figures(
                of: ["tip-a"], app: Self.app, type: nil, from: noon, until: later.addingTimeInterval(1))
            #expect(untyped["tip-a"]?.switchedOff == 0)
        }
    }

    @Test func `a dead token within seven days is an uninstall`() async throws {
        try await RulesDatabase.withPool { pool in
            let noon = Date(timeIntervalSince1970: 1_767_268_800)
            let day: TimeInterval = 86_400
            for user in ["u1", "u2", "u3", "u4", "u5"] {
                try await Self.add(pool, "tip-a", user, accepted: true, at: noon)
            }
            // The answer to the same push, and to a push of another rule.
            try await Self.add(pool, "tip-a", "u1", deadAt: noon.addingTimeInterval(2), at: noon.addingTimeInterval(1))
            try await Self.add(
                pool, "other", "u2", deadAt: noon.addingTimeInterval(6 * day), at: noon.addingTimeInterval(6 * day))
            // Too late, in another app, and before.
            try await Self.add(
                pool, "other", "u3", deadAt: noon.addingTimeInterval(7 * day + 60), at: noon.addingTimeInterval(6 * day)
            )
            try await Self.add(
                pool, "other", "u4", app: AppID(rawValue: "second")!, deadAt: noon.addingTimeInterval(60),
                at: noon.addingTimeInterval(30))
            try await Self.add(
                pool, "other", "u5", deadAt: noon.addingTimeInterval(-60), at: noon.addingTimeInterval(-90))
            let figures = try await VariantStore(pool).figures(
                of: ["tip-a"], app: Self.app, type: nil, from: noon, until: noon.addingTimeInterval(60))
            #expect(figures["tip-a"]?.users == 5 && figures["tip-a"]?.uninstalled == 2)
        }
    }
}
