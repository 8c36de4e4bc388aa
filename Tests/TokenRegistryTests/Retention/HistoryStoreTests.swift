import Foundation
import Logging
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RegistryStore
@testable import TokenRegistry

@Suite(.timeLimit(.minutes(2))) struct HistoryStoreTests {
    typealias Fixture = StoreFixture
    typealias A = AudienceFixture
    typealias R = RetentionFixture

    private static func timestamp(_ days: Int) -> Timestamp { .now + .seconds(-86_400 * Int64(days)) }

    private static func members(_ pool: PostgresPool) async throws -> [String] {
        try await pool.query("SELECT name || ' ' || user_id FROM registry.membership ORDER BY 1")
            .map { try $0.decode(String.self, at: 0) }
    }

    @Test(arguments: [1, 2, 3, 1000])
    func `memberships that ended long ago are deleted, and current and recent ones stay`(step: Int) async throws {
        try await Fixture.withStore { _, pool in
            let memberships = MembershipStore(pool)
            let other = AppID(rawValue: "hide-and-seek")!
            var changes: [MembershipStore.Change] = []
            for (app, group) in [
                (Fixture.app, UserGroup.topic(A.name("t"))), (Fixture.app, .tag(A.name("u"))),
                (other, .topic(A.name("v"))),
            ] {
                changes += [
                    A.member("in", group, at: Self.timestamp(200), app: app),
                    A.member("lately", group, joins: false, at: Self.timestamp(89), app: app),
                    A.member("long-ago", group, joins: false, at: Self.timestamp(91), app: app),
                    A.member("too", group, joins: false, at: Self.timestamp(91), app: app),
                ]
            }
            let applied = try await memberships.apply(changes)
            #expect(applied == 12)
            let store = HistoryStore(pool, step: step)
            #expect(try await R.walk(store).memberships == 6)
            #expect(
                try await Self.members(pool) == ["t in", "t lately", "u in", "u lately", "v in", "v lately"])
            #expect(try await R.walk(store).memberships == 0)
        }
    }

    @Test func `the walk's stored position has no erased user`() async throws {
        try await Fixture.withStore { store, pool in
            let group = UserGroup.topic(A.name("t"))
            try await MembershipStore(pool).apply(["a", "b", "c", "d"].map { A.member($0, group) })
            let history = HistoryStore(pool, step: 2)
            #expect(try await history.advance(now: .now) == .more(memberships: 0))
            func place() async throws -> [String] {
                let row = try await pool.query("SELECT name, user_id FROM registry.membership_sweep").first
                return [try row!.decode(String.self, at: 0), try row!.decode(String.self, at: 1)]
            }
            #expect(try await place() == ["t", "b"])
            try await store.erase(Fixture.user("a"))
            #expect(try await place() == ["t", "b"])
            try await store.erase(Fixture.user("b"))
            #expect(try await place() == ["t", ""])
            #expect(try await history.advance(now: .now) == .more(memberships: 0))
            #expect(try await history.advance(now: .now) == .finished(memberships: 0, .init()))
            #expect(try await place() == ["", ""])
        }
    }

    /// Inserts a campaign to a list, with one range whose last step has a lease.
    private static func campaign(
        _ rule: String, _ state: String, created: Int, finished: Int? = nil, step: Int? = nil, next: Int? = nil,
        _ pool: PostgresPool
    ) async throws -> UUID {
        let id = UUID()
        try await pool.execute(
            """
            INSERT INTO registry.campaign (id, app, rule, notification, audience, state, created_at, finished_at, next_at)
            VALUES (\(id), 'a', \(rule), '', '', \(state), \(R.ago(created)), \(finished.map(R.ago))::timestamptz,
                coalesce(\(next.map(R.ago))::timestamptz, '-infinity'))
            """)
        try await pool.execute(
            """
            INSERT INTO registry.campaign_range (campaign, number, lower, position, lease_until)
            VALUES (\(id), 0, '', '', coalesce(\(step.map(R.ago))::timestamptz, '-infinity'))
            """)
        if finished == nil {
            try await pool.execute(
                "INSERT INTO registry.campaign_member (campaign, user_id) VALUES (\(id), 'm')")
            try await pool.execute("INSERT INTO registry.campaign_part (campaign, number) VALUES (\(id), 1)")
        }
        return id
    }

    @Test func `old ended campaigns are deleted, and inactive ones expire`() async throws {
        try await Fixture.withStore { _, pool in
            let old = try await Self.campaign("old", "done", created: 410, finished: 401, pool)
            _ = try await Self.campaign("older", "cancelled", created: 900, finished: 800, pool)
            _ = try await Self.campaign("new", "done", created: 900, finished: 399, pool)
            var stuck: Set<UUID> = []
            for state in ["collecting", "paused", "running"] {
                stuck.insert(try await Self.campaign("stuck \(state)", state, created: 401, step: 401, pool))
            }
            _ = try await Self.campaign("walking", "running", created: 900, step: 399, pool)
            _ = try await Self.campaign("rated", "running", created: 900, next: 399, pool)
            _ = try await Self.campaign("young", "collecting", created: 399, pool)
            let records = try await R.walk(HistoryStore(pool)).records
            #expect((records.campaigns, records.imports) == (2, 0))
            #expect(Set(records.expired) == stuck && records.expired.count == 3)
            try await CampaignStore(pool).deleteEndedLists()
            let left: [String] = try await pool.query(
                """
                SELECT rule || ' ' || state || ' ' || (SELECT count(*) FROM registry.campaign_member m WHERE m.campaign = id)
                    || (SELECT count(*) FROM registry.campaign_part p WHERE p.campaign = id)
                    || (SELECT count(*) FROM registry.campaign_range g WHERE g.campaign = id)
                FROM registry.campaign ORDER BY rule
                """
            ).map { try $0.decode(String.self, at: 0) }
            #expect(
                left == [
                    "new done 001", "rated running 111", "stuck collecting expired 001", "stuck paused expired 001",
                    "stuck running expired 001", "walking running 111", "young collecting 111",
                ])
            #expect(
                try await pool.query("SELECT count(*) FROM registry.campaign_range WHERE campaign = \(old)")
                    .single(Int.self) == 0)
            #expect(try await R.walk(HistoryStore(pool)).records == .init())
        }
    }

    @Test func `a cursor of a deleted campaign is void`() async throws {
        try await Fixture.withStore { store, pool in
            try await store.register([Fixture.claim("a", "01")])
            let campaigns = CampaignStore(pool)
            let notification = A.notification(.everyone)
            let cursor = try await campaigns.open(notification, to: notification.audience!)[0]
            try await pool.execute(
                "UPDATE registry.campaign SET state = 'cancelled', finished_at = \(R.ago(401))")
            #expect(try await R.walk(HistoryStore(pool)).records.campaigns == 1)
            #expect(try await campaigns.claim(cursor, redelivered: true) == .void)
        }
    }

    @Test func `campaigns are deleted in steps, oldest first, and none within a month`() async throws {
        try await Fixture.withStore { _, pool in
            var ids: [UUID] = []
            for finished in [500, 450, 401, 31, 29] {
                ids.append(try await Self.campaign("\(finished)", "done", created: 600, finished: finished, pool))
            }
            func left() async throws -> [String] {
                try await pool.query("SELECT rule FROM registry.campaign ORDER BY finished_at")
                    .map { try $0.decode(String.self, at: 0) }
            }
            let store = HistoryStore(pool, step: 2)
            #expect(try await R.walk(store).records.campaigns == 2)
            #expect(try await left() == ["401", "31", "29"])
            #expect(try await R.walk(store).records.campaigns == 1)
            let forgotten = try await pool.query("SELECT registry.forget_campaigns(\(ids)::uuid[])").single(Int.self)
            #expect(forgotten == 1)
            #expect(try await left() == ["29"])
        }
    }

    @Test func `imports are kept as long as campaigns, finished or not`() async throws {
        try await Fixture.withStore { _, pool in
            for (name, started, finished) in [
                ("old", 500, 401), ("new", 500, 399), ("begun", 399, nil), ("left", 401, nil),
                ("fresh", 29, nil),
            ] as [(String, Int, Int?)] {
                try await pool.execute(
                    """
                    INSERT INTO registry.import (id, name, started_at, finished_at)
                    VALUES (\(Array(name.utf8)), \(name), \(R.ago(started)), \(finished.map(R.ago))::timestamptz)
                    """)
            }
            #expect(try await R.walk(HistoryStore(pool)).records.imports == 2)
            let left = try await pool.query("SELECT name FROM registry.import ORDER BY 1")
                .map { try $0.decode(String.self, at: 0) }
            #expect(left == ["begun", "fresh", "new"])
            let soon = try await pool.query("SELECT registry.forget_imports(now())").single(Int.self)
            #expect(soon == 2)
        }
    }

    @Test func `one process runs a step at a time, and rests at the end of the walk`() async throws {
        try await Fixture.withStore { _, pool in
            let sweeper = HistorySweeper(
                store: HistoryStore(pool, step: 1), now: { .now }, logger: Logger(label: "tests.registry"))
            try await MembershipStore(pool).apply([A.member("a", .topic(A.name("t")))])
            let (held, release) = AsyncStream<Void>.makeStream()
            let (begun, begin) = AsyncStream<Void>.makeStream()
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    try await pool.transaction { transaction in
                        _ = try await transaction.query("SELECT * FROM registry.membership_sweep FOR UPDATE")
                        begin.finish()
                        for await _ in held {}
                    }
                }
                for await _ in begun {}
                #expect(try await HistoryStore(pool).advance(now: .now) == .elsewhere)
                #expect(try await sweeper.step() == StaleSweeper.pace)
                release.finish()
                try await group.waitForAll()
            }
            #expect(try await sweeper.step() == StaleSweeper.pace)
            #expect(try await sweeper.step() == StaleSweeper.rest)
        }
    }
}
