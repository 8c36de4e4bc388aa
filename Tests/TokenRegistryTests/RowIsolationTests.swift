import AMQP
import Foundation
import Logging
import Messaging
import Postgres
import PushProtocol
import ServiceKit
import Testing
import TestSupport

@testable import RegistryStore
@testable import TokenRegistry

/// Every worker continues when one row of one app cannot be read.
@Suite(.timeLimit(.minutes(2))) struct RowIsolationTests {
    typealias Fixture = StoreFixture
    static let other = AppID(rawValue: "hide-and-seek")!

    /// All workers. Add a test for each new worker.
    static let workers = [
        "OutboxRelay", "CampaignRunner", "StaleSweeper", "HistorySweeper", "ListSweeper", "FIDHalts", "TokenRewriter",
        "LateActivityWorker",
    ]

    @Test func `every worker of the registry has a test here`() throws {
        #expect(try serviceTypes(in: "Services/TokenRegistry") == Self.workers.sorted())
    }

    @Test func `the states of late activities skip an unreadable one`() async throws {
        try await Fixture.withStore { store, pool in
            try await pool.execute(
                """
                INSERT INTO registry.live_state (app, user_id, scope, notification, message, at, is_end)
                VALUES ('family-portal', 'a', 's', gen_random_uuid(), 'not JSON', 1, false)
                """)
            try await pool.execute(
                """
                INSERT INTO registry.reported_activity (app, user_id, scope, device_id)
                VALUES ('family-portal', 'a', 's', gen_random_uuid()), ('family-portal', 'b', 's', gen_random_uuid())
                """)
            let log = CapturingLogger()
            let worker = LateActivityWorker(
                service: "token-registry", states: LiveStateStore(pool, logger: log.logger), registrations: store,
                bus: Self.bus(), now: { .now }, logger: log.logger)
            try await worker.sendDue()
            #expect(try await pool.query("SELECT count(*) FROM registry.reported_activity").single(Int.self) == 0)
            #expect("\(log.lines)".contains("is unreadable"))
        }
    }

    @Test func `the relay sets unreadable rows aside, and keeps unknown kinds for a newer process`()
        async throws
    {
        try await Fixture.withStore { store, pool in
            let log = CapturingLogger()
            let bus = Self.bus()
            let relay = OutboxRelay(
                service: "token-registry", store: OutboxStore(pool), bus: bus, logger: log.logger)
            try await pool.execute(
                """
                INSERT INTO registry.outbox (past, app, user_id)
                VALUES ('teleported', 'family-portal', 'a'), ('registered', 'family-portal', ''),
                    ('registered', 'no app id', 'secret-user')
                """)
            try await pool.execute(
                """
                INSERT INTO registry.outbox (past, app, user_id, device_id, provider, environment, kind, active)
                VALUES ('registered', 'family-portal', 'a', gen_random_uuid(), 'apns', 'production', 'hologram', true)
                """)
            try await store.register([Fixture.claim("b", "0a0b", app: Self.other)])
            try await store.unregister([Fixture.claim("b", "0a0b", app: Self.other)])
            #expect(try await relay.publishDue() == false)
            let events = try bus.messages(in: "listener").map { try DeviceEvent.decode(wireBody: $0.body) }
            #expect(events.map(\.change) == [.registered, .signedOut])
            #expect(events.last?.revokes != nil)
            #expect(
                try await Self.outbox(pool) == ["hologram": nil, "registered": "row-unreadable", "teleported": nil])
            #expect("\(log.lines)".contains("row-unreadable") && !"\(log.lines)".contains("secret-user"))

            // No newer process publishes it for a week.
            try await pool.execute("UPDATE registry.outbox SET at = at - interval '8 days'")
            try await relay.measure()
            #expect(try await Self.outbox(pool)["teleported"] == "row-kind-unknown")
            #expect(try await OutboxStore(pool).wait() == nil)
        }
    }

    @Test func `an unreadable halt does not end others`() async throws {
        try await Fixture.withStore { _, pool in
            try await pool.execute(
                """
                INSERT INTO registry.fid_halt (app, app_version, halted_at, until, suspected)
                VALUES ('no app id', '1', now(), now() + interval '1 day', 5),
                    ('family-portal', '2', now(), now() + interval '1 day', 5)
                """)
            let halts = FIDHalts(store: FIDStore(pool), apps: [Self.other], logger: .silent)
            try await halts.refresh()
            let app = try #require(AppID(rawValue: "family-portal"))
            #expect(halts.preference.halted == [.init(app: app, version: "2")])
        }
    }

    @Test func `a row that the broker permanently refuses is set aside`() async throws {
        try await Fixture.withStore { store, pool in
            try await store.register([Fixture.claim("a", "01")])
            try await store.register([Fixture.claim("b", "02", app: Self.other)])
            let bus = Self.bus()
            bus.answer(publishesTo: .devices, with: [.returned(code: 406, text: "PRECONDITION_FAILED")])
            let relay = OutboxRelay(service: "token-registry", store: OutboxStore(pool), bus: bus, logger: .silent)
            #expect(try await relay.publishDue() == false)
            #expect(try await relay.publishDue() == false)
            #expect(bus.messages(in: "listener").count == 1)
            #expect(try await Self.outbox(pool) == ["alert": "row-unpublishable"])
        }
    }

    @Test func `sends, campaigns and counts skip a registration of an unknown kind`() async throws {
        try await Fixture.withStore { store, pool in
            try await store.register([Fixture.claim("a", "01"), Fixture.claim("b", "02", app: Self.other)])
            try await Self.addUnreadable(to: pool)
            let users = [Fixture.user("a"), Fixture.user("b", app: Self.other)]
            #expect(try await store.devices(of: users).map { $0.map(\.token.secret) } == [["01"], ["02"]])
            let walk = try await AudienceFixture.walk(
                AudienceFixture.notification(.everyone), CampaignStore(pool), limit: 10)
            #expect(walk.told == ["01"])
            #expect(try await RegistrationCountStore(pool).count().values.reduce(0, +) == 2)
        }
    }

    @Test func `a device history has an unreadable row with its reason, and the others`() async throws {
        try await Fixture.withStore { store, pool in
            try await store.register([Fixture.claim("a", "01"), Fixture.claim("b", "02", app: Self.other)])
            try await Self.addUnreadable(to: pool)
            let history = try await store.history(of: Fixture.user("a"))
            #expect(history.compactMap(\.record).map(\.registration.token.secret) == ["01"])
            let reasons = history.compactMap { entry in
                if case .unreadable(let device, let reason) = entry { return device == nil ? "no id" : reason }
                return nil
            }
            #expect(reasons.count == 1 && reasons.allSatisfy { $0.contains("“kind”") && !$0.contains("hologram") })
            // The user's own list has the readable rows.
            let own = try await store.registrations(of: Fixture.user("a"))
            #expect(own.map(\.registration.token.secret) == ["01"])
            #expect(try await store.records(of: Fixture.user("b", app: Self.other)).count == 1)
        }
    }

    @Test func `the sweepers continue past unreadable rows`() async throws {
        try await Fixture.withStore { store, pool in
            try await Self.addUnreadable(to: pool)
            try await store.register([Fixture.claim("b", "02", app: Self.other, at: .now + .seconds(-90 * 86_400))])
            guard case .finished = try await SweepStore(pool).advance(now: .now) else {
                Issue.record("the sweep did not finish")
                return
            }
            #expect(
                try await pool.query(
                    "SELECT stale_since IS NOT NULL FROM registry.registration WHERE app = 'hide-and-seek'"
                ).single(Bool.self))

            try await pool.execute(
                """
                INSERT INTO registry.membership (app, kind, name, user_id, active, at)
                VALUES ('no app id', 'topic', 'no name', 'a', false, now() - interval '400 days'),
                    ('hide-and-seek', 'topic', 'photos', 'b', false, now() - interval '400 days')
                """)
            _ = try await HistorySweeper(store: HistoryStore(pool), now: { .now }, logger: .silent).step()
            #expect(try await pool.query("SELECT count(*) FROM registry.membership").single(Int.self) == 0)

            for app in ["no app id", "hide-and-seek"] {
                let id = UUID()
                try await pool.execute(
                    """
                    INSERT INTO registry.campaign (id, app, rule, notification, audience, state, finished_at)
                    VALUES (\(id), \(app), 'r', 'no JSON', 'a list', 'cancelled', now())
                    """)
                try await pool.execute("INSERT INTO registry.campaign_part (campaign, number) VALUES (\(id), 1)")
                try await pool.execute("INSERT INTO registry.campaign_member VALUES (\(id), 'a')")
            }
            try await CampaignStore(pool).deleteEndedLists()
            #expect(try await pool.query("SELECT count(*) FROM registry.campaign_part").single(Int.self) == 0)
        }
    }

    @Test func `the rewriter skips a token that cannot be decrypted`() async throws {
        let folder = try TemporaryFolder()
        let keys = try TokenEncryptionFixture.keys(TokenEncryptionFixture.first, in: folder)
        try await Fixture.withStore { store, pool in
            try await store.register([Fixture.claim("b", "02", app: Self.other)])
            try await Self.addUnreadable(to: pool)
            try await pool.execute(
                "UPDATE registry.registration SET token = 'v1 lost AAAA' WHERE app <> 'hide-and-seek'")
            let worker = TokenRewriter(
                store: TokenRewriteStore(pool, tokens: keys), bulkThrottle: BulkThrottle(), logger: .silent)
            _ = try await worker.step()
            #expect(try await TokenEncryptionFixture.stored(pool) == ["k1": 1, "lost": 1])
        }
    }

    @Test func `given a registration that no statement can flag, then the sweep flags the others`() async throws {
        try await Fixture.withStore { store, pool in
            let users = ["a", "bad", "b", "c", "d"]
            try await store.register(
                users.enumerated().map { Fixture.claim($1, "0\($0)", at: .now + .seconds(-90 * 86_400)) })
            try await pool.execute(
                """
                ALTER TABLE registry.registration ADD CHECK (user_id <> 'bad' OR stale_since IS NULL) NOT VALID
                """)
            let sweep = SweepStore(pool, logger: .silent)
            while case .more = try await sweep.advance(now: .now) {}
            let flagged = try await pool.query(
                "SELECT user_id FROM registry.registration WHERE stale_since IS NOT NULL ORDER BY user_id")
            #expect(try flagged.map { try $0.decode(String.self, at: 0) } == ["a", "b", "c", "d"])
        }
    }

    @Test func `given rows that no statement can delete, then the history sweeper deletes the others`() async throws {
        try await Fixture.withStore { _, pool in
            try await pool.execute(
                """
                INSERT INTO registry.membership (app, kind, name, user_id, active, at)
                SELECT 'family-portal', 'topic', 't', u, false, now() - interval '400 days'
                FROM unnest('{a,bad,c,d}'::text[]) AS u
                """)
            try await pool.execute(
                """
                INSERT INTO registry.campaign (id, app, rule, notification, audience, state, finished_at)
                SELECT gen_random_uuid(), 'family-portal', r, '', '', 'done', now() - interval '900 days'
                FROM unnest('{bad,b,c}'::text[]) AS r
                """)
            try await pool.execute(
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$")
            try await pool.execute(
                """
                CREATE TRIGGER refuse BEFORE DELETE ON registry.membership FOR EACH ROW
                WHEN (OLD.user_id = 'bad') EXECUTE FUNCTION refuse()
                """)
            try await pool.execute(
                """
                CREATE TRIGGER refuse BEFORE DELETE ON registry.campaign FOR EACH ROW
                WHEN (OLD.rule = 'bad') EXECUTE FUNCTION refuse()
                """)
            let sweeper = HistorySweeper(
                store: HistoryStore(pool, logger: .silent), now: { .now }, logger: .silent)
            while try await sweeper.step() == StaleSweeper.pace {}
            let left = try await pool.query(
                "SELECT user_id FROM registry.membership UNION ALL SELECT rule FROM registry.campaign")
            #expect(try left.map { try $0.decode(String.self, at: 0) } == ["bad", "bad"])
        }
    }

    @Test func `given a token that no statement can rewrite, then the rewriter rewrites the others`() async throws {
        let folder = try TemporaryFolder()
        let keys = try TokenEncryptionFixture.keys(TokenEncryptionFixture.first, in: folder)
        try await Fixture.withStore { store, pool in
            try await store.register(
                ["a", "bad", "c", "d"].enumerated().map { Fixture.claim($1, "0\($0)") })
            try await pool.execute(
                "ALTER TABLE registry.registration ADD CHECK (user_id <> 'bad' OR token NOT LIKE 'v1 %') NOT VALID")
            let rewriting = TokenRewriteStore(pool, tokens: keys, logger: .silent)
            while case .more = try await rewriting.advance() {}
            #expect(try await TokenEncryptionFixture.stored(pool) == ["k1": 3, "plain": 1])
        }
    }

    /// Inserts an active registration of user `a` with a kind of a newer release.
    private static func addUnreadable(to pool: PostgresPool) async throws {
        try await pool.execute(
            """
            INSERT INTO registry.registration (device_id, app, user_id, provider, environment, token, kind,
                registered_at, state_changed_at)
            VALUES (gen_random_uuid(), 'family-portal', 'a', 'apns', 'production', 'ff', 'hologram', now(), now())
            """)
    }

    /// The rows of the outbox: `kind` or `past` with the dead reason.
    private static func outbox(_ pool: PostgresPool) async throws -> [String: String?] {
        var rows: [String: String?] = [:]
        for row in try await pool.query("SELECT coalesce(kind, past), dead_reason FROM registry.outbox") {
            rows[try row.decode(String.self, at: 0)] = .some(try row.decode(String?.self, at: 1))
        }
        return rows
    }

    private static func bus() -> InMemoryBus {
        var topology = Topology(apps: [Fixture.app, other])
        topology.queues.append(Topology.Queue(name: "listener", arguments: [:]))
        topology.bindings.append(OutboxTests.listener)
        return InMemoryBus(topology: topology)
    }
}
