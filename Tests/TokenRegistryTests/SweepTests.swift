import Foundation
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RegistryStore

@Suite(.timeLimit(.minutes(2))) struct SweepTests {
    typealias Fixture = StoreFixture
    private let now = Timestamp.now

    private func days(_ days: Int) -> Timestamp { now + .seconds(-days * 86_400) }

    /// Sweeps to the end of the table. Returns the number of changed registrations.
    private func sweep(_ store: SweepStore) async throws -> Int {
        var touched = 0
        while true {
            switch try await store.advance(now: now) {
            case .elsewhere: Issue.record("no other process sweeps")
            case .more(let changed, _): touched += changed
            case .finished(let changed, _): return touched + changed
            }
        }
    }

    @Test func `a device is flagged after a month, and an Android one ends after 270 days`() async throws {
        try await Fixture.withStore { store, pool in
            var iPhone = Fixture.claim("a", "08", .fcm, at: days(900))
            iPhone.platform = .ios
            try await store.register([
                iPhone,
                Fixture.claim("a", "01", at: days(29)), Fixture.claim("a", "02", at: days(31)),
                Fixture.claim("a", "03", .fcm, at: days(269)), Fixture.claim("a", "04", .fcm, at: days(271)),
                Fixture.claim("a", "05", .fcm, kind: .fid, at: days(271)),
                Fixture.claim("a", "06", .fcm, kind: .fcmWeb, at: days(271)), Fixture.claim("a", "07", at: days(900)),
            ])
            let sweeper = SweepStore(pool, step: 2)
            #expect(try await sweep(sweeper) == 7)
            #expect(try await sweep(sweeper) == 0)
            #expect(try await store.tokens(of: "a") == ["01", "02", "03", "06", "07", "08"])
            let records = try await store.records(of: Fixture.user("a"))
            let flagged = records.filter { $0.staleSince != nil }.map(\.registration.token.secret)
            #expect(flagged.sorted() == ["02", "03", "04", "05", "06", "07", "08"])
            let ended = records.filter { $0.state == .stale }
            #expect(ended.map(\.registration.token.secret).sorted() == ["04", "05"])
            #expect(ended.allSatisfy { $0.reason == "not seen for 270 days" })
        }
    }

    @Test func `an erasure and its registrations are kept for a month, and other registrations stay`()
        async throws
    {
        try await Fixture.withStore { store, pool in
            for user in ["old", "new"] {
                try await store.register([Fixture.claim(user, user == "old" ? "01" : "02")])
                try await store.erase(Fixture.user(user))
            }
            try await store.register([Fixture.claim("left", "03")])
            try await store.unregister([Fixture.claim("left", "03")])
            func age() async throws {
                try await pool.transaction { transaction in
                    try await transaction.execute("SET LOCAL session_replication_role = replica")
                    try await transaction.execute(
                        """
                        UPDATE registry.registration SET state_changed_at = \(days(31).date)
                        WHERE user_id IN ('old', 'left')
                        """)
                    try await transaction.execute(
                        "UPDATE registry.erasure SET noted_at = \(days(31).date) WHERE user_id = 'old'")
                }
            }
            func known(_ table: String) async throws -> [String] {
                try await pool.query("SELECT user_id FROM registry.\(identifier: table) ORDER BY 1")
                    .map { try $0.decode(String.self, at: 0) }
            }
            #expect(try await sweep(SweepStore(pool)) == 0)
            #expect(try await known("erasure") == ["new", "old"])
            try await age()
            #expect(try await sweep(SweepStore(pool, step: 1)) == 0)
            #expect(try await known("erasure") == ["new"])
            #expect(try await known("registration") == ["left", "new"])
            // No earlier, whatever time the caller passes.
            _ = try await pool.query("SELECT registry.forget_erasures(now() + interval '1 day')")
            #expect(try await known("erasure") == ["new"])
        }
    }

    @Test func `the positions of old campaigns are deleted, and their counts stay`() async throws {
        try await Fixture.withStore { _, pool in
            for (name, state, finished) in [
                ("old", "done", days(31) as Timestamp?), ("new", "done", days(29)), ("now", "running", nil),
            ] {
                let campaign = UUID()
                try await pool.execute(
                    """
                    INSERT INTO registry.campaign (id, app, rule, notification, audience, state, finished_at)
                    VALUES (\(campaign), 'a', \(name), '', '', \(state), \(finished?.date))
                    """)
                for (number, (lower, upper)) in [("", "m" as String?), ("m", nil)].enumerated() {
                    try await pool.execute(
                        """
                        INSERT INTO registry.campaign_range (campaign, number, lower, upper, position, users)
                        VALUES (\(campaign), \(number), \(lower), \(upper), 'z', 7)
                        """)
                }
            }
            #expect(try await sweep(SweepStore(pool)) == 0)
            let found: [String] = try await pool.query(
                """
                SELECT rule || ' ' || lower || '-' || coalesce(upper, '') || ' ' || position || ' ' || users
                FROM registry.campaign_range JOIN registry.campaign ON campaign = id ORDER BY rule, number
                """
            ).map { try $0.decode(String.self, at: 0) }
            #expect(found == ["new -m z 7", "new m- z 7", "now -m z 7", "now m- z 7", "old -  7", "old -  7"])
        }
    }

    @Test func `a device seen again is neither flagged nor ended`() async throws {
        try await Fixture.withStore { store, pool in
            try await store.register([
                Fixture.claim("a", "01", at: days(31)), Fixture.claim("a", "02", .fcm, at: days(271)),
            ])
            #expect(try await sweep(SweepStore(pool)) == 2)
            try await store.register([Fixture.claim("a", "01"), Fixture.claim("a", "02", .fcm)])
            #expect(try await store.tokens(of: "a") == ["01", "02"])
            let records = try await store.records(of: Fixture.user("a"))
            #expect(records.allSatisfy { $0.staleSince == nil && $0.state == .active })
            #expect(try await sweep(SweepStore(pool)) == 0)
        }
    }

    @Test func `one process runs a step at a time`() async throws {
        try await Fixture.withStore { store, pool in
            try await store.register([Fixture.claim("a", "01", at: days(31))])
            let (held, release) = AsyncStream<Void>.makeStream()
            let (begun, begin) = AsyncStream<Void>.makeStream()
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    try await pool.transaction { transaction in
                        _ = try await transaction.query("SELECT * FROM registry.sweep FOR UPDATE")
                        begin.finish()
                        for await _ in held {}
                    }
                }
                for await _ in begun {}
                #expect(try await SweepStore(pool).advance(now: now) == .elsewhere)
                release.finish()
                try await group.waitForAll()
            }
            #expect(try await SweepStore(pool).advance(now: now) == .finished(changed: 1, deleted: 0))
        }
    }
}
