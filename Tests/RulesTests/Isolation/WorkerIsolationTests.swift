import AMQP
import DecisionLog
import Foundation
import Logging
import Messaging
import Postgres
import PushProtocol
import ServiceKit
import Testing
import TestSupport

@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// One bad row of one app among good rows of another: the good rows are handled, and the bad row is marked dead.
@Suite(.timeLimit(.minutes(8))) struct WorkerIsolationTests {
    static let bad = AppID(rawValue: "bad")!
    static let good = AppID(rawValue: "good")!

    static func rules(_ app: AppID, _ policy: String) -> String {
        """
        app: \(app)
        types: { news: { about: News } }
        events:
          thing.happened: { examples: [{ users: [1], name: Pat, room: 1, at: "2026-01-20T12:00:00Z" }] }
          room.listed: { examples: [{ room: 1, them: [{ id: 1, role: boss }] }] }
        groups:
          - { event: room.listed, group: "{{room}}", members: them, id: id, role: role }
        rules:
          only:
            when: { event: thing.happened }
            to: [{ users: users }, { group: "{{room}}" }]
            say: \(policy.contains("digest") ? "{}" : #"{ body: "{{name}}" }"#)
            how: { sound: default, badge: unread }
            policy: \(policy)
        """
    }

    /// Two apps on one database.
    struct TwoAppFixture: Sendable {
        let pool: PostgresPool
        let clock = DecisionStoreTests.Clock(GatheringTests.start)
        let currentRules: CurrentRules
        let bus = InMemoryBus(apps: [WorkerIsolationTests.bad, WorkerIsolationTests.good])

        init(_ pool: PostgresPool, _ policy: String) throws {
            self.pool = pool
            currentRules = CurrentRules(
                RuleSets([
                    try RuleFile.parse(WorkerIsolationTests.rules(bad, policy), file: "bad.yaml"),
                    try RuleFile.parse(WorkerIsolationTests.rules(good, policy), file: "good.yaml"),
                ]))
        }

        var decisions: DecisionStore { DecisionStore(pool: pool, spread: .zero, logger: .silent) }

        /// Handles the same event in both apps, the bad one first.
        func handleEvent(users: String = "[1]", room: Int = 0) async throws {
            let handler = EventHandler(currentRules: currentRules, store: decisions, now: { clock.now })
            for app in [bad, good] {
                let event = cloudEvent(
                    id: UUID().uuidString,
                    data: #"{"users":\#(users),"name":"\#(app)","room":\#(room),"at":"2026-01-20T12:00:00Z"}"#)
                let inbound = delivered(event, routingKey: "\(app).thing.happened").at(clock.now)
                let verdict = try await handler.handle([
                    Delivery(inbound: inbound, message: try handler.decode(inbound))
                ])[0]
                #expect(verdict.disposition == .done)
                clock.advance(.milliseconds(10))
            }
        }

        /// The apps with published notifications.
        func published() throws -> Set<AppID> {
            var apps: Set<AppID> = []
            for lane in [Lane.interactive, .bulk] {
                for message in bus.messages(in: WorkQueue.registryNotifications(lane).name) {
                    apps.insert(try Notification.decode(wireBody: message.body).app)
                }
            }
            return apps
        }

        func spoil(_ pending: SQL) async throws {
            let count = try await pool.execute(pending)
            #expect(count > 0, "the scenario has a bad row")
        }

        /// `reason app` of each dead row in a table.
        func dead(_ table: DeadRow.Table) async throws -> [String] {
            try await pool.query(
                "SELECT dead_reason FROM rules.\(identifier: table.rawValue) WHERE dead_at IS NOT NULL"
            )
            .map { try $0.decode(String.self, at: 0) }
        }

        func count(_ table: SQL) async throws -> Int { try await RulesDatabase.count(table, pool) }

        var scheduledSendWorker: ScheduledSendWorker {
            ScheduledSendWorker(
                service: "rules", store: HeldStore(pool: pool, spread: .zero, logger: .silent),
                currentRules: currentRules, bus: bus,
                bulkThrottle: BulkThrottle(), now: { clock.now }, logger: .silent)
        }

        var teller: FanOutWorker {
            FanOutWorker(
                service: "rules", store: FanOutStore(decisions: decisions, logger: .silent), currentRules: currentRules,
                bus: bus,
                now: { clock.now }, logger: .silent)
        }

        var notificationRevoker: NotificationRevoker {
            NotificationRevoker(
                service: "rules", store: RevocationStore(pool: pool, logger: .silent), currentRules: currentRules,
                bus: bus, now: { clock.now }, logger: .silent)
        }

        var digestWorker: DigestWorker {
            DigestWorker(
                store: DigestStore(pool: pool, logger: .silent), currentRules: currentRules, now: { clock.now },
                logger: .silent)
        }
    }

    static func with(_ policy: String, _ body: (TwoAppFixture) async throws -> Void) async throws {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            try await body(TwoAppFixture(pool, policy))
        }
    }

    @Test func `the list of workers is complete`() throws {
        #expect(try serviceTypes(in: "Services/Rules/Workers") == Worker.allCases.map(\.rawValue).sorted())
    }

    @Test(arguments: Worker.allCases) func `one bad row of an app stops no row of another`(_ worker: Worker)
        async throws
    {
        switch worker {
        case .scheduledSendWorker: try await release()
        case .fanOutWorker: try await fanOut()
        case .digestWorker: try await bundle()
        case .inboxFeed: try await stream()
        case .badgeCorrector: try await correct()
        case .pushRevoker: try await revoke()
        case .notificationRevoker: try await takeBack()
        case .shownCopyClearer: try await clearShownCopies()
        case .deliveryReportWorker: try await report()
        case .statsRollup: try await tally()
        case .variantGuard: try await stopVariants()
        case .sweeper: try await sweep()
        case .ruleReloader: try reload()
        case .censusWorker: try await census()
        case .channelKeeper: try await keepChannels()
        }
    }

    private func release() async throws {
        try await Self.with("{ schedule: { at: at } }") { (fixture: TwoAppFixture) async throws in
            try await fixture.handleEvent()
            try await fixture.spoil("UPDATE rules.saying SET content = '[]' WHERE app = 'bad'")
            fixture.clock.set(moment("2026-01-20T12:00:01Z"))
            try await fixture.scheduledSendWorker.releaseDue()
            #expect(try fixture.published() == [Self.good])
            #expect(try await fixture.dead(.held) == ["unreadable"])
        }
    }

    private func census() async throws {
        try await Self.with("{ type: news }") { (fixture: TwoAppFixture) async throws in
            let worker = CensusStoreTests.CensusFixture.worker(fixture.pool, fixture.clock)
            func advance(_ rounds: Int) async throws {
                for _ in 0..<rounds {
                    fixture.clock.advance(.seconds(3))
                    try await worker.advance()
                }
            }
            try await advance(10)
            try await fixture.handleEvent(users: "[1,2]")
            // An event of an app with an invalid name, and a report with a part of a key.
            try await fixture.spoil("UPDATE rules.event SET app = 'BAD app' WHERE app = 'bad'")
            try await fixture.pool.execute(
                """
                INSERT INTO rules.census_report
                    (service, process, received_at, sent_at, oldest_at, is_final, settled, retried, dead_lettered)
                VALUES ('x', gen_random_uuid(), now(), now(), now(), false, '\\x0102', '\\x0102', '\\x0102')
                """)
            try await advance(12)
            let rows = try await CensusTable(fixture.pool).read(app: nil).rows
            #expect(
                rows.map { "\($0.app) \($0.state) \($0.number)" } == ["BAD app on-the-way 2", "good at-registry 2"])
        }
    }

    private func fanOut() async throws {
        try await Self.with("{ type: news }") { (fixture: TwoAppFixture) async throws in
            for app in [Self.bad, Self.good] {
                try await fixture.pool.execute(
                    """
                    INSERT INTO rules.member (app, circle, user_id, has_left, at)
                    SELECT \(app.rawValue), '7', 'u-' || n, false, now() FROM generate_series(1, 1100) AS n
                    """)
            }
            try await fixture.handleEvent(room: 7)
            try await fixture.spoil("UPDATE rules.crowd SET body = '[]' WHERE body ->> 'app' = 'bad'")
            var steps = 0
            while try await fixture.teller.processNext(), steps < 20 { steps += 1 }
            #expect(try fixture.published() == [Self.good])
            #expect(try await fixture.count("rules.decision WHERE user_id LIKE 'u-%'") == 1100)
            #expect(try await fixture.dead(.largeAudience) == ["unreadable"])
        }
    }

    private func bundle() async throws {
        try await Self.with(#"{ digest: { after: 15m, keep: { name: "{{name}}" }, say: { body: "{{count}}" } } }"#) {
            (fixture: TwoAppFixture) async throws in
            try await fixture.handleEvent(users: "[1,2]")
            // A bucket with an invalid owner, and an item with an invalid number.
            try await fixture.spoil("UPDATE rules.digest SET user_id = '' WHERE app = 'bad' AND user_id = '1'")
            try await fixture.spoil(
                "UPDATE rules.digest_item SET details = '{\"name\":1e999}' WHERE app = 'bad' AND user_id = '2'")
            fixture.clock.advance(.seconds(1000))
            try await fixture.digestWorker.closeDue()
            try await fixture.scheduledSendWorker.releaseDue()
            #expect(try fixture.published() == [Self.good])
            #expect(try await fixture.dead(.digest) == ["unreadable"])
            #expect(try await fixture.dead(.digestItem) == ["unreadable"])
        }
    }

    private func stream() async throws {
        try await Self.with("{ type: news }") { (fixture: TwoAppFixture) async throws in
            let inboxFeed = InboxFeed(
                store: InboxFeedStore(pool: fixture.pool, logger: .silent), currentRules: fixture.currentRules,
                now: { fixture.clock.now },
                logger: .silent)
            var listeners: [InboxFeedStore.Listener] = []
            for app in [Self.bad, Self.good] {
                listeners.append(try await inboxFeed.listener(PersonKey(app: app, user: user("1")), after: nil))
            }
            try await fixture.handleEvent()
            try await fixture.spoil("UPDATE rules.saying SET content = '[]' WHERE app = 'bad'")
            fixture.clock.advance(InboxFeedStore.patience + .seconds(1))
            let (bad, good) = (listeners[0], listeners[1])
            async let silent = inboxFeed.next(for: bad)
            async let update = inboxFeed.next(for: good)
            try await eventually("both listen") { inboxFeed.listeners == 2 }
            try await inboxFeed.look()
            guard case .news(let items, _) = await update else {
                Issue.record("the good listener gets no item")
                return
            }
            #expect(items.compactMap(\.app) == [Self.good])
            inboxFeed.sendHeartbeats(after: .zero)
            guard case .nothing = await silent else {
                Issue.record("the listener of the bad row still waits")
                return
            }
            #expect(try await fixture.dead(.inbox) == ["unreadable"])
            // The inbox can be read, and does not count the item.
            let store = InboxStore(pool: fixture.pool, logger: .silent)
            let person = PersonKey(app: Self.bad, user: user("1"))
            #expect(try await store.list(person, InboxStore.Page(limit: 10)).items.isEmpty)
            #expect(try await store.unread(person) == 0)
        }
    }

    private func correct() async throws {
        try await Self.with("{ type: news }") { (fixture: TwoAppFixture) async throws in
            for (app, name) in [("bad", ""), ("good", "1")] {
                try await fixture.pool.execute(
                    "INSERT INTO rules.badge (app, user_id, due_at) VALUES (\(app), \(name), \(fixture.clock.now.date))"
                )
            }
            try await BadgeCorrector(
                service: "rules", store: BadgeStore(pool: fixture.pool, logger: .silent),
                currentRules: fixture.currentRules,
                bus: fixture.bus, now: { fixture.clock.now }, logger: .silent
            ).correctDue()
            #expect(try fixture.published() == [Self.good])
            #expect(try await fixture.dead(.badge) == ["unreadable"])
        }
    }

    private func revoke() async throws {
        try await Self.with("{ type: news }") { (fixture: TwoAppFixture) async throws in
            try await fixture.handleEvent()
            try await fixture.pool.execute("UPDATE rules.decision SET decided_at = clock_timestamp()")
            let person = PersonKey(app: Self.good, user: user("1"))
            _ = try await PreferenceStore(pool: fixture.pool).change(person) { _ in PersonalSettings(isOn: false) }
            try await fixture.pool.execute("INSERT INTO rules.preference_change (app, user_id) VALUES ('bad', '')")
            let revoker = PushRevoker(
                service: "rules", store: PreferenceChangeStore(pool: fixture.pool, logger: .silent),
                currentRules: fixture.currentRules,
                bus: fixture.bus, now: { fixture.clock.now }, logger: .silent)
            try await eventually("both rows to be taken", within: .seconds(30)) {
                try await revoker.revokeDue()
                return try await fixture.count("rules.preference_change WHERE dead_at IS NULL") == 0
            }
            let messages = fixture.bus.messages(in: StreamName.senderRevocations.rawValue)
            #expect(try messages.map { try NotificationRevocation.decode(wireBody: $0.body).app } == [Self.good])
            #expect(try await fixture.dead(.preferenceChange) == ["unreadable"])
        }
    }

    private func takeBack() async throws {
        try await Self.with("{ type: news }") { (fixture: TwoAppFixture) async throws in
            try await fixture.handleEvent()
            try await fixture.pool.execute("UPDATE rules.decision SET decided_at = clock_timestamp()")
            // The second has an app with an invalid name.
            for app in ["good", "BAD app"] {
                try await fixture.pool.execute(
                    """
                    INSERT INTO rules.revocation (id, app, event_id, inbox, source, requested_by)
                    SELECT gen_random_uuid(), \(app), id, 'remove', 'operator', 'desk' FROM rules.event
                    WHERE app = \(app) OR \(app) = 'BAD app' LIMIT 1
                    """)
            }
            try await fixture.notificationRevoker.revokeDue()
            let messages = fixture.bus.messages(in: StreamName.senderRevocations.rawValue)
            #expect(try messages.map { try NotificationRevocation.decode(wireBody: $0.body).app } == [Self.good])
            #expect(try await fixture.dead(.revocation) == ["unreadable"])
            #expect(try await fixture.count("rules.revocation WHERE ended_at IS NOT NULL AND app = 'good'") == 1)
        }
    }

    private func report() async throws {
        try await Self.with("{ type: news, report: true }") { (fixture: TwoAppFixture) async throws in
            try await fixture.handleEvent()
            try await fixture.spoil("UPDATE rules.report SET user_id = '' WHERE app = 'bad'")
            try await DeliveryReportWorker(
                service: "rules", store: ReportStore(pool: fixture.pool, logger: .silent), bus: fixture.bus,
                now: { fixture.clock.now }, logger: .silent
            ).report()
            #expect(try await fixture.count("rules.report WHERE app = 'good' AND due_at IS NULL") == 1)
            #expect(try await fixture.dead(.report) == ["unreadable"])
        }
    }

    private func tally() async throws {
        try await Self.with("{ type: news }") { (fixture: TwoAppFixture) async throws in
            try await fixture.handleEvent()
            fixture.clock.advance(.seconds(3600))
            // An hour with counts that violate the table's constraints.
            try await fixture.pool.execute("ALTER TABLE rules.tally ADD CHECK (app <> 'bad')")
            try await fixture.spoil(
                """
                UPDATE rules.decision SET decided_at = decided_at - interval '1 hour' FROM rules.event
                WHERE event.key = decision.event AND event.app = 'bad'
                """)
            let store = StatsStore(pool: fixture.pool)
            await #expect(throws: PostgresError.self) { try await store.count(now: fixture.clock.now) }
            #expect(try await fixture.count("rules.tally WHERE app = 'good'") == 1)
        }
    }

    private func sweep() async throws {
        try await Self.with("{ type: news }") { (fixture: TwoAppFixture) async throws in
            let old = (fixture.clock.now - .seconds(400 * 86_400)).date
            for app in ["bad", "good"] {
                try await fixture.pool.execute(
                    "INSERT INTO rules.told (app, user_id, key, until) VALUES (\(app), '1', 'k', \(old))")
                try await fixture.pool.execute("INSERT INTO rules.done (app, item, at) VALUES (\(app), 'i', \(old))")
                try await fixture.pool.execute(
                    """
                    INSERT INTO rules.inbox (notification, app, user_id, saying, at)
                    VALUES (gen_random_uuid(), \(app), '1', gen_random_uuid(), \(old))
                    """)
            }
            try await fixture.pool.execute(
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$")
            try await fixture.pool.execute(
                """
                CREATE TRIGGER refuse BEFORE DELETE ON rules.told FOR EACH ROW WHEN (OLD.app = 'bad')
                EXECUTE FUNCTION refuse()
                """)
            let sweeper = Sweeper(
                tombstones: TombstoneStore(pool: fixture.pool), history: HistoryStore(pool: fixture.pool),
                terms: .usual,
                pause: .zero, now: { fixture.clock.now }, logger: .silent)
            await #expect(throws: PostgresError.self) { try await sweeper.sweep() }
            #expect(try await fixture.count("rules.done") == 0)
            #expect(try await fixture.count("rules.inbox") == 0)
        }
    }

    private func reload() throws {
        let folder = try TemporaryFolder()
        _ = try folder.write("good.yaml", Self.rules(Self.good, "{ type: news }"))
        let directory = folder.path
        let currentRules = CurrentRules(try RuleDirectory.load(directory))
        let reloader = RuleReloader(directory: directory, currentRules: currentRules, apps: [], logger: .silent)
        _ = try folder.write("bad.yaml", "app: bad\nrules: [")
        reloader.look()
        #expect(currentRules.ruleSets.ruleSets[Self.good] != nil)
    }
}
