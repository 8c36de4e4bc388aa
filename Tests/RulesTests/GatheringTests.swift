import AMQP
import Foundation
import Logging
import Messaging
import Postgres
import PushProtocol
import RuleEngine
import Testing
import TestSupport

@testable import RuleLanguage
@testable import Rules

/// Groups, schedules, digests and deduplication on a real database.
@Suite(.timeLimit(.minutes(8))) struct GatheringTests {
    static let start = moment("2026-01-10T12:00:00Z")

    static func rules(_ policy: String, to: String = "{ users: users }", say: String = #"{ body: "{{name}}" }"#)
        -> String
    {
        """
        app: test
        zone: Europe/Berlin
        types: { news: { about: News } }
        caps: { hourly: { at-most: 2, within: 1h } }
        events:
          thing.happened:
            examples: [{ users: [1], name: Pat, room: 1, at: "2026-01-20T12:00:00Z" }]
          room.joined: { examples: [{ room: 1, who: [1], role: clerk }] }
          room.left: { examples: [{ room: 1, who: [1] }] }
          room.listed: { examples: [{ room: 1, them: [{ id: 1, role: boss }] }] }
          thing.settled: { examples: [{ name: Pat }] }
        groups:
          - { event: room.joined, group: "room/{{room}}", joined: who, as: clerk }
          - { event: room.left, group: "room/{{room}}", left: who }
          - { event: room.listed, group: "room/{{room}}", members: them, id: id, role: role }
        done:
          - { event: thing.settled, item: "{{name}}" }
        rules:
          only:
            when: { event: thing.happened }
            to: \(to)
            say: \(say)
            how: { sound: default, expires-after: 2d }
            policy: \(policy)
        """
    }

    /// Rules on a database, with a test clock and an in-memory bus.
    struct GatheringFixture: Sendable {
        let pool: PostgresPool
        let clock = DecisionStoreTests.Clock(GatheringTests.start)
        let currentRules: CurrentRules
        let bus = InMemoryBus(apps: [AppID(rawValue: "test")!])

        init(_ pool: PostgresPool, _ rules: String) throws {
            self.pool = pool
            currentRules = CurrentRules(RuleSets([try parse(rules)]))
        }

        /// Handles an event and returns the published notifications as `users: body`.
        @discardableResult func handleEvent(
            _ type: String, _ data: String, id: String = UUID().uuidString, at moment: String? = nil
        ) async throws -> [String] {
            let verdict = try await verdict(
                type, data, id: id, at: moment, by: DecisionStore(pool: pool, spread: .zero))
            #expect(["done", "discard"].contains(verdict.disposition.label), "\(verdict.disposition)")
            return try verdict.outbound.map { try GatheringTests.usersAndBody($0.body) }
        }

        /// Handles an event with a store.
        func verdict(
            _ type: String, _ data: String, id: String, at moment: String?, by store: DecisionStore
        ) async throws -> Verdict {
            let handler = EventHandler(currentRules: currentRules, store: store, now: { clock.now })
            let extra = moment.map { #","time":"\#($0)""# } ?? ""
            let inbound = delivered(
                cloudEvent(id: id, type: type, data: data, extra: extra), routingKey: "test.\(type)"
            ).at(clock.now)
            return try await handler.handle([
                Delivery(inbound: inbound, message: try handler.decode(inbound))
            ])[0]
        }

        @discardableResult func thing(
            _ name: String, users: String = "[1]", at moment: String? = nil, for due: String = "2026-01-20T12:00:00Z",
            id: String = UUID().uuidString
        ) async throws -> [String] {
            try await handleEvent(
                "thing.happened", #"{"users":\#(users),"name":"\#(name)","room":1,"at":"\#(due)"}"#, id: id, at: moment)
        }

        var scheduledSendWorker: ScheduledSendWorker {
            ScheduledSendWorker(
                service: "rules", store: HeldStore(pool: pool, spread: .zero), currentRules: currentRules, bus: bus,
                bulkThrottle: BulkThrottle(pauseFactor: 1), now: { clock.now }, logger: Logger(label: "tests"))
        }

        var digestWorker: DigestWorker {
            DigestWorker(
                store: DigestStore(pool: pool), currentRules: currentRules, now: { clock.now },
                logger: Logger(label: "tests"))
        }

        /// Runs the workers and returns the published notifications.
        func runWorkers() async throws -> [String] {
            let queue = WorkQueue.registryNotifications(.interactive).name
            let before = bus.messages(in: queue).count
            try await digestWorker.closeDue()
            try await scheduledSendWorker.releaseDue()
            return try bus.messages(in: queue).dropFirst(before).map { try GatheringTests.usersAndBody($0.body) }
                .sorted()
        }

        func decisionLog(_ user: String = "1") async throws -> [String] {
            try await pool.query(
                """
                SELECT answer || ' ' || reason FROM rules.decision WHERE user_id = \(user)
                ORDER BY decided_at, step, notification
                """
            ).map { try $0.decode(String.self, at: 0) }
        }

        func count(_ table: SQL) async throws -> Int { try await RulesDatabase.count(table, pool) }
    }

    static func usersAndBody(_ body: [UInt8]) throws -> String {
        let notification = try Notification.decode(wireBody: body)
        if let audience = notification.audience {
            return "\(audience.members.decisionLabel): \(notification.content.body ?? "")"
        }
        let users = notification.recipients.map(\.user.rawValue).joined(separator: ",")
        return "\(users): \(notification.content.body ?? "")"
    }

    func run(
        _ policy: String, to: String = "{ users: users }", say: String = #"{ body: "{{name}}" }"#,
        _ body: (GatheringFixture) async throws -> Void
    ) async throws {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            try await body(GatheringFixture(pool, Self.rules(policy, to: to, say: say)))
        }
    }

    // MARK: Groups

    @Test func `group members are notified by role, and former members are not`() async throws {
        try await run("{ type: news }", to: #"{ group: "room/{{room}}", role: clerk, except: users }"#) {
            (fixture: GatheringFixture) async throws in
            try await fixture.handleEvent("room.joined", #"{"room":1,"who":[1,2,3],"role":""}"#)
            try await fixture.handleEvent("room.joined", #"{"room":2,"who":[9],"role":""}"#)
            #expect(try await fixture.thing("a") == ["2,3: a"])
            try await fixture.handleEvent("room.left", #"{"room":1,"who":[3]}"#)
            #expect(try await fixture.thing("b") == ["2: b"])
            try await fixture.handleEvent(
                "room.listed",
                #"{"room":1,"them":[{"id":3,"role":"clerk"},{"id":4,"role":"boss"},{"id":5,"role":null}]}"#)
            #expect(try await fixture.thing("c", users: "[]") == ["3: c"])
        }
    }

    @Test func `the latest membership event applies, in any order of arrival`() async throws {
        try await run("{ type: news }", to: #"{ group: "room/{{room}}" }"#) {
            (fixture: GatheringFixture) async throws in
            try await fixture.handleEvent("room.left", #"{"room":1,"who":[1]}"#, at: "2026-01-10T10:00:02Z")
            try await fixture.handleEvent(
                "room.joined", #"{"room":1,"who":[1,2],"role":""}"#, at: "2026-01-10T10:00:01Z")
            #expect(try await fixture.thing("a") == ["2: a"])
            try await fixture.handleEvent(
                "room.listed", #"{"room":1,"them":[{"id":5,"role":"x"}]}"#, at: "2026-01-10T10:00:09Z")
            try await fixture.handleEvent("room.joined", #"{"room":1,"who":[6],"role":""}"#, at: "2026-01-10T10:00:08Z")
            #expect(try await fixture.thing("b") == ["5: b"])
        }
    }

    @Test func `an audience is published to the registry, also for a repeated event`() async throws {
        let rules = Self.rules("{}", to: #"{ topic: "room-{{room}}" }"#).replacing("    policy: {}", with: "")
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            let fixture = try GatheringFixture(pool, rules)
            for _ in 0..<2 { #expect(try await fixture.thing("a", id: "e") == ["(topic room-1): a"]) }
            #expect(try await fixture.decisionLog("(topic room-1)") == ["push audience"])
            #expect(try await fixture.count("rules.inbox") == 0)
        }
    }

    // MARK: Schedules

    static let scheduled = #"{ item: "{{name}}", schedule: { at: at, before: 2h } }"#

    @Test func `a scheduled notification enters the inbox when due and is pushed once`() async throws {
        try await run(Self.scheduled) { (fixture: GatheringFixture) async throws in
            #expect(try await fixture.thing("a") == [])
            #expect(try await fixture.count("rules.inbox") == 0)
            fixture.clock.set(moment("2026-01-20T09:59:59Z"))
            #expect(try await fixture.runWorkers() == [])
            fixture.clock.set(moment("2026-01-20T10:00:00Z"))
            #expect(try await fixture.runWorkers() == ["1: a"])
            #expect(try await fixture.runWorkers() == [])
            #expect(try await fixture.count("rules.inbox") == 1)
            #expect(try await fixture.count("rules.held") == 0)
            #expect(try await fixture.decisionLog() == ["hold scheduled", "push wanted"])
        }
    }

    @Test func `a later event reschedules a notification, an older one does not, and done cancels it`() async throws {
        try await run(Self.scheduled) { (fixture: GatheringFixture) async throws in
            try await fixture.thing("a", at: "2026-01-10T10:00:00Z")
            try await fixture.thing("a", at: "2026-01-10T11:00:00Z", for: "2026-01-21T12:00:00Z")
            try await fixture.thing("a", at: "2026-01-10T10:30:00Z", for: "2026-01-22T12:00:00Z")
            try await fixture.thing("b", users: "[1,2]")
            #expect(try await fixture.count("rules.held") == 3)
            try await fixture.handleEvent("thing.settled", #"{"name":"b"}"#)
            #expect(try await fixture.count("rules.held") == 1)
            fixture.clock.set(moment("2026-01-20T10:00:00Z"))
            #expect(try await fixture.runWorkers() == [])
            fixture.clock.set(moment("2026-01-21T10:00:00Z"))
            #expect(try await fixture.runWorkers() == ["1: a"])
            fixture.clock.set(moment("2026-01-23T10:00:00Z"))
            #expect(try await fixture.runWorkers() == [])
            #expect(
                try await fixture.decisionLog().sorted() == [
                    "drop done", "drop replaced", "drop replaced", "hold scheduled", "hold scheduled", "hold scheduled",
                    "push wanted",
                ])
        }
    }

    @Test func `a notification already due is sent now, and an expired one is not`() async throws {
        try await run(Self.scheduled) { (fixture: GatheringFixture) async throws in
            #expect(try await fixture.thing("a", for: "2026-01-10T13:00:00Z") == ["1: a"])
            #expect(try await fixture.thing("b", for: "2026-01-10T11:00:00Z") == [])
            #expect(try await fixture.decisionLog().sorted() == ["drop too-late", "push wanted"])
        }
    }

    @Test func `a notification disabled before its due time is not sent`() async throws {
        try await run(#"{ type: news, item: "{{name}}", schedule: { at: at } }"#) {
            (fixture: GatheringFixture) async throws in
            try await fixture.thing("a")
            try await fixture.pool.execute(
                #"INSERT INTO rules.person (app, user_id, settings) VALUES ('test', '1', '{"types":{"news":false}}')"#)
            fixture.clock.set(moment("2026-01-20T12:00:00Z"))
            #expect(try await fixture.runWorkers() == [])
            #expect(try await fixture.count("rules.inbox") == 1)
            #expect(try await fixture.decisionLog() == ["hold scheduled", "inbox type-off"])
        }
    }

    // MARK: Digests

    @Test func `a digest collects events for its window, and a full one is sent early`() async throws {
        let digest =
            #"{ digest: { after: 15m, count: 3, keep: { name: "{{name}}" }, say: { body: "{{count}}:{{#items}} {{name}}{{/items}}" } } }"#
        try await run(digest, say: "{}") { (fixture: GatheringFixture) async throws in
            for name in ["a", "b"] {
                #expect(try await fixture.thing(name) == [])
                fixture.clock.advance(.seconds(1))
            }
            fixture.clock.advance(.seconds(897))
            #expect(try await fixture.runWorkers() == [])
            fixture.clock.advance(.seconds(1))
            #expect(try await fixture.runWorkers() == ["1: 2: a b"])
            #expect(try await fixture.count("rules.digest_item") == 0)
            fixture.clock.advance(.seconds(3600))
            #expect(try await fixture.runWorkers() == [])
            for name in ["c", "d", "e"] {
                try await fixture.thing(name)
                fixture.clock.advance(.seconds(1))
            }
            #expect(try await fixture.runWorkers() == ["1: 3: c d e"])
            #expect(try await fixture.count("rules.inbox") == 2)
        }
    }

    @Test func `notifications above a cap go into a digest`() async throws {
        let policy =
            #"{ caps: hourly, surplus: digest, digest: { after: 30m, say: { body: "{{count}} more" } } }"#
        try await run(policy) { (fixture: GatheringFixture) async throws in
            for name in ["a", "b"] { #expect(try await fixture.thing(name) == ["1: \(name)"]) }
            for name in ["c", "d", "e"] { #expect(try await fixture.thing(name) == []) }
            fixture.clock.advance(.seconds(1800))
            #expect(try await fixture.runWorkers() == ["1: 3 more"])
            // The inbox has each notification, and not the digest.
            #expect(try await fixture.count("rules.inbox") == 5)
            fixture.clock.advance(.seconds(7200))
            #expect(try await fixture.runWorkers() == [])
        }
    }

    @Test func `two processes send a digest once`() async throws {
        let digest = #"{ digest: { after: 15m, say: { body: "{{count}}" } } }"#
        try await run(digest, say: "{}") { (fixture: GatheringFixture) async throws in
            let users = (1...50).map(String.init).joined(separator: ",")
            try await fixture.thing("a", users: "[\(users)]")
            try await fixture.thing("b", users: "[\(users)]")
            fixture.clock.advance(.seconds(900))
            try await withThrowingDiscardingTaskGroup { group in
                for _ in 0..<4 {
                    group.addTask {
                        try await fixture.digestWorker.closeDue()
                        try await fixture.scheduledSendWorker.releaseDue()
                    }
                }
            }
            try await fixture.digestWorker.closeDue()
            try await fixture.scheduledSendWorker.releaseDue()
            let published = try fixture.bus.messages(in: WorkQueue.registryNotifications(.interactive).name)
                .map { try Self.usersAndBody($0.body) }
            #expect(published.count == 50)
            #expect(Set(published).count == 50)
            #expect(published.allSatisfy { $0.hasSuffix(": 2") })
        }
    }

    @Test func `a repeated event is not added to a digest again`() async throws {
        let digest = #"{ digest: { after: 15m, say: { body: "{{count}}" } } }"#
        try await run(digest, say: "{}") { (fixture: GatheringFixture) async throws in
            for _ in 0..<3 { try await fixture.thing("a", id: "same") }
            fixture.clock.advance(.seconds(900))
            #expect(try await fixture.runWorkers() == ["1: 1"])
            try await fixture.thing("a", id: "same")
            fixture.clock.advance(.seconds(900))
            #expect(try await fixture.runWorkers() == [])
        }
    }

    // MARK: Deduplication

    @Test func `a duplicate within the deduplication window is not sent`() async throws {
        try await run(#"{ dedupe: { key: "{{name}}", within: 1h } }"#) { (fixture: GatheringFixture) async throws in
            #expect(try await fixture.thing("a") == ["1: a"])
            #expect(try await fixture.thing("a", users: "[1,2]") == ["2: a"])
            #expect(try await fixture.thing("b") == ["1: b"])
            fixture.clock.advance(.seconds(3600))
            #expect(try await fixture.thing("a") == ["1: a"])
            #expect(try await fixture.decisionLog().filter { $0 == "drop repeated" }.count == 1)
            #expect(try await fixture.count("rules.inbox") == 4)
        }
    }

    // MARK: Reports

    @Test func `upstream gets a delivery report for each change of the result`() async throws {
        try await run("{ report: true }") { (fixture: GatheringFixture) async throws in
            let store = ReportStore(pool: fixture.pool)
            func news() async throws -> [String] {
                let reports = try await store.take(now: fixture.clock.now)
                try await store.told(reports)
                return reports.map { "\($0.event) \($0.user) \($0.isPushSent) \($0.devices) \($0.isFailed)" }
            }
            func answer(_ answer: Outcome.Answer) async throws {
                let notification: UUID = try await fixture.pool.query("SELECT notification FROM rules.decision")
                    .single()
                let outcome = Outcome(
                    notification: notification, device: UUID(), answer: answer, at: fixture.clock.now, registeredAt: nil
                )
                try await OutcomeStore(pool: fixture.pool).keep(
                    [
                        Outcomes(
                            trace: Trace(id: UUID(), correlation: "e-7", causation: "e-7"),
                            app: AppID(rawValue: "test")!, origin: .apns, environment: .production, lane: .interactive,
                            outcomes: [outcome])
                    ], now: fixture.clock.now)
            }
            try await fixture.thing("a", id: "e-7")
            #expect(try await news() == ["e-7 1 false 0 false"])
            #expect(try await news() == [])
            try await answer(.rejected(reason: "PayloadEmpty", suspectToken: false))
            #expect(try await news() == ["e-7 1 true 0 true"])
            for _ in 0..<2 { try await answer(.accepted(id: nil)) }
            #expect(try await news() == ["e-7 1 true 2 false"])
            #expect(try await news() == [])
        }
    }

    @Test func `an unroutable report is reported as such, and an unconfirmed one is published again`()
        async throws
    {
        try await run("{ report: true }") { (fixture: GatheringFixture) async throws in
            let worker = DeliveryReportWorker(
                service: "rules", store: ReportStore(pool: fixture.pool), bus: fixture.bus, now: { fixture.clock.now },
                logger: .silent)
            try await fixture.thing("a", id: "e-7")
            fixture.bus.answer(publishesTo: .notifications, with: [.nacked])
            try await worker.report()
            #expect(try await fixture.count("rules.report WHERE due_at IS NOT NULL") == 1)
            fixture.clock.advance(ReportStore.lease)
            try await worker.report()
            #expect(try await fixture.count("rules.report WHERE due_at IS NOT NULL") == 0)
        }
    }
}
