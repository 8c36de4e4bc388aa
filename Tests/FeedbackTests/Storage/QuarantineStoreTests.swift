import Foundation
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import FeedbackStore

/// The quarantine in feedback's tables, read and resolved by an operator.
@Suite(.timeLimit(.minutes(2))) struct QuarantineStoreTests {
    private let app = AppID(rawValue: "family-portal")!
    private let device = UUID(uuidString: "11111111-1111-5111-8111-111111111111")!
    private let now = Date(timeIntervalSince1970: 1_767_225_600)

    /// Three quarantined registrations of two apps, the first with two pieces of evidence, and one registration
    /// without.
    private func withQuarantine(_ body: (QuarantineStore, PostgresPool) async throws -> Void) async throws {
        try await TestSchema.feedback.withPool { pool in
            let others = [UUID(), UUID(), UUID()]
            for (device, app, decision) in [
                (device, "family-portal", "quarantined"), (device, "family-portal", "quarantined"),
                (others[0], "family-portal", "quarantined"), (others[1], "hide-and-seek", "quarantined"),
                (others[2], "family-portal", "published"),
            ] {
                try await pool.execute(
                    """
                    INSERT INTO feedback.evidence (notification_id, device_id, app, provider, environment, finding,
                        reason, observed_at, decision, detail)
                    VALUES (gen_random_uuid(), \(device), \(app), 'apns', 'production', 'suspect', 'BadDeviceToken',
                        \(now), \(decision), 'storm')
                    """)
            }
            try await pool.execute(
                """
                INSERT INTO feedback.guard (app, provider, environment, tripped_at, held_until, refused, answered)
                VALUES
                    ('family-portal', 'apns', 'production', \(now), \(now), 30, 100),
                    ('hide-and-seek', 'apns', 'production', \(now), \(now), NULL, NULL)
                """)
            try await body(QuarantineStore(pool), pool)
        }
    }

    private func decisions(_ pool: PostgresPool) async throws -> [String: Int] {
        let rows = try await pool.query("SELECT decision, count(*) AS n FROM feedback.evidence GROUP BY decision")
        var counts: [String: Int] = [:]
        for row in rows {
            counts[try row.decode(String.self, at: "decision")] = Int(try row.decode(Int64.self, at: "n"))
        }
        return counts
    }

    @Test func `list has one line per registration and counts the omitted ones`() async throws {
        try await withQuarantine { store, _ in
            let all = try await store.list(app: nil, limit: 100)
            #expect(all.total == 3)
            #expect(all.entries.count == 3)
            let entry = try #require(all.entries.first { $0.device == device })
            #expect((entry.count, entry.reason, entry.cause) == (2, "BadDeviceToken", "storm"))
            let one = try await store.list(app: app, limit: 1)
            #expect((one.entries.count, one.total) == (1, 2))

            let guards = try await store.guards(app: app)
            #expect(guards.map(\.route) == ["family-portal/apns/production"])
            #expect(guards.map(\.refused) == [30] && guards.map(\.answered) == [100])
            #expect(try await store.guards(app: nil).map(\.refused) == [30, nil])
            #expect(try await store.evidence(of: device, limit: 10).count == 2)
        }
    }

    @Test func `release approves all evidence of the device, once`() async throws {
        try await withQuarantine { store, pool in
            let released = try await store.apply(.release, about: .devices([device, UUID()]), app: nil, now: now)
            #expect(released == 1)
            #expect(try await store.apply(.release, about: .devices([device]), app: nil, now: now) == 0)
            #expect(try await decisions(pool) == ["approved": 2, "quarantined": 2, "published": 1])
            #expect(try await store.guards(app: nil).count == 2)
            let due = try await pool.query(
                "SELECT count(*) FROM feedback.evidence WHERE decision = 'approved' AND due_at = \(now)"
            ).single(Int64.self)
            #expect(due == 2)
        }
    }

    @Test func `a decision for one app leaves other apps' quarantine and guard alone`() async throws {
        try await withQuarantine { store, pool in
            let discarded = try await store.apply(.discard, about: .all, app: app, now: now)
            #expect(discarded == 2)
            #expect(try await decisions(pool) == ["discarded": 3, "quarantined": 1, "published": 1])
            #expect(try await store.guards(app: nil).map(\.route) == ["hide-and-seek/apns/production"])
            #expect(try await store.apply(.release, about: .devices([device]), app: nil, now: now) == 0)
            #expect(try await store.apply(.release, about: .all, app: nil, now: now) == 1)
        }
    }
}
