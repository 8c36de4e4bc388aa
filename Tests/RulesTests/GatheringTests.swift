import AMQP
import Foundation
import Logging
import Messaging
import Postgres
import PushProtocol
import TestSupport
import Testing

@testable import Rules

/// Groups, schedules, digests and what is said once, on a real database.
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

    /// Rules on a database, with a clock and a bus that tests look at.
    struct Place: Sendable {
        let pool: PostgresPool
        let clock = DecisionStoreTests.Clock(GatheringTests.start)
        let shelf: RuleShelf
        let bus = InMemoryBus(apps: [AppID(rawValue: "test")!])

        init(_ pool: PostgresPool, _ rules: String) throws {
            self.pool = pool
            shelf = RuleShelf(RuleBook([try parse(rules)]))
        }

        /// What is published: `users: body`.
        @discardableResult func happen(
            _ type: String, _ data: String, id: String = UUID().uuidString, at moment: String? = nil
        ) async throws -> [String] {
            let handler = EventHandler(
                shelf: shelf, store: DecisionStore(pool: pool, spread: .zero), now: { clock.now })
            let extra = moment.map { #","time":"\#($0)""# } ?? ""
            let inbound = delivered(
                cloudEvent(id: id, type: type, data: data, extra: extra), routingKey: "test.\(type)"
            ).at(clock.now)
            let verdict = try await handler.handle([
                Delivery(inbound: inbound, message: try handler.decode(inbound))
            ])[0]
            #expect(["done", "discard"].contains(verdict.disposition.label), "\(verdict.disposition)")
            return try verdict.outbound.map { try GatheringTests.told($0.body) }
        }

        @discardableResult func thing(
            _ name: String, users: String = "[1]", at moment: String? = nil, for due: String = "2026-01-20T12:00:00Z",
            id: String = UUID().uuidString
        ) async throws -> [String] {
            try await happen(
                "thing.happened", #"{"users":\#(users),"name":"\#(name)","room":1,"at":"\#(due)"}"#, id: id, at: moment)
        }

        var releaser: Releaser {
            Releaser(
                service: "rules", store: HeldStore(pool: pool, spread: .zero), shelf: shelf, bus: bus,
                bulkThrottle: BulkThrottle(pauseFactor: 1), now: { clock.now }, logger: Logger(label: "tests"))
        }

        var bundler: Bundler {
            Bundler(
                store: DigestStore(pool: pool), shelf: shelf, now: { clock.now }, logger: Logger(label: "tests"))
        }

        /// What leaves now of what waited.
        func pass() async throws -> [String] {
            let queue = WorkQueue.registryNotifications(.interactive).name
            let before = bus.messages(in: queue).count
            try await bundler.closeDue()
            try await releaser.releaseDue()
            return try bus.messages(in: queue).dropFirst(before).map { try GatheringTests.told($0.body) }.sorted()
        }

        func story(_ user: String = "1") async throws -> [String] {
            try await pool.query(
                """
                SELECT answer || ' ' || reason FROM rules.decision WHERE user_id = \(user)
                ORDER BY decided_at, step, notification
                """
            ).map { try $0.decode(String.self, at: 0) }
        }

        func count(_ table: SQL) async throws -> Int { try await RulesDatabase.count(table, pool) }
    }

    static func told(_ body: [UInt8]) throws -> String {
        let notification = try Notification.decode(wireBody: body)
        if let audience = notification.audience {
            return "\(audience.members.spoken): \(notification.content.body ?? "")"
        }
        let users = notification.recipients.map(\.user.rawValue).joined(separator: ",")
        return "\(users): \(notification.content.body ?? "")"
    }

    func run(
        _ policy: String, to: String = "{ users: users }", say: String = #"{ body: "{{name}}" }"#,
        _ body: (Place) async throws -> Void
    ) async throws {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            try await body(Place(pool, Self.rules(policy, to: to, say: say)))
        }
    }

    // MARK: Groups

    @Test func `members hear of it by their roles, and who has left does not`() async throws {
        try await run("{ type: news }", to: #"{ group: "room/{{room}}", role: clerk, except: users }"#) {
            (place: Place) async throws in
            try await place.happen("room.joined", #"{"room":1,"who":[1,2,3],"role":""}"#)
            try await place.happen("room.joined", #"{"room":2,"who":[9],"role":""}"#)
            #expect(try await place.thing("a") == ["2,3: a"])
            try await place.happen("room.left", #"{"room":1,"who":[3]}"#)
            #expect(try await place.thing("b") == ["2: b"])
            try await place.happen(
                "room.listed",
                #"{"room":1,"them":[{"id":3,"role":"clerk"},{"id":4,"role":"boss"},{"id":5,"role":null}]}"#)
            #expect(try await place.thing("c", users: "[]") == ["3: c"])
        }
    }

    @Test func `the last word about a member counts, in whatever order the words come`() async throws {
        try await run("{ type: news }", to: #"{ group: "room/{{room}}" }"#) { (place: Place) async throws in
            try await place.happen("room.left", #"{"room":1,"who":[1]}"#, at: "2026-01-10T10:00:02Z")
            try await place.happen("room.joined", #"{"room":1,"who":[1,2],"role":""}"#, at: "2026-01-10T10:00:01Z")
            #expect(try await place.thing("a") == ["2: a"])
            try await place.happen(
                "room.listed", #"{"room":1,"them":[{"id":5,"role":"x"}]}"#, at: "2026-01-10T10:00:09Z")
            try await place.happen("room.joined", #"{"room":1,"who":[6],"role":""}"#, at: "2026-01-10T10:00:08Z")
            #expect(try await place.thing("b") == ["5: b"])
        }
    }

    @Test func `an audience is told through the registry, also when the event comes again`() async throws {
        let rules = Self.rules("{}", to: #"{ topic: "room-{{room}}" }"#).replacing("    policy: {}", with: "")
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            let place = try Place(pool, rules)
            for _ in 0..<2 { #expect(try await place.thing("a", id: "e") == ["(topic room-1): a"]) }
            #expect(try await place.story("(topic room-1)") == ["push audience"])
            #expect(try await place.count("rules.inbox") == 0)
        }
    }

    // MARK: Schedules

    static let scheduled = #"{ item: "{{name}}", schedule: { at: at, before: 2h } }"#

    @Test func `what is for later waits, is in the inbox when it is due, and is pushed once`() async throws {
        try await run(Self.scheduled) { (place: Place) async throws in
            #expect(try await place.thing("a") == [])
            #expect(try await place.count("rules.inbox") == 0)
            place.clock.set(moment("2026-01-20T09:59:59Z"))
            #expect(try await place.pass() == [])
            place.clock.set(moment("2026-01-20T10:00:00Z"))
            #expect(try await place.pass() == ["1: a"])
            #expect(try await place.pass() == [])
            #expect(try await place.count("rules.inbox") == 1)
            #expect(try await place.count("rules.held") == 0)
            #expect(try await place.story() == ["hold scheduled", "push wanted"])
        }
    }

    @Test func `a later event moves it, an older one does not, and what is done is not said`() async throws {
        try await run(Self.scheduled) { (place: Place) async throws in
            try await place.thing("a", at: "2026-01-10T10:00:00Z")
            try await place.thing("a", at: "2026-01-10T11:00:00Z", for: "2026-01-21T12:00:00Z")
            try await place.thing("a", at: "2026-01-10T10:30:00Z", for: "2026-01-22T12:00:00Z")
            try await place.thing("b", users: "[1,2]")
            #expect(try await place.count("rules.held") == 3)
            try await place.happen("thing.settled", #"{"name":"b"}"#)
            #expect(try await place.count("rules.held") == 1)
            place.clock.set(moment("2026-01-20T10:00:00Z"))
            #expect(try await place.pass() == [])
            place.clock.set(moment("2026-01-21T10:00:00Z"))
            #expect(try await place.pass() == ["1: a"])
            place.clock.set(moment("2026-01-23T10:00:00Z"))
            #expect(try await place.pass() == [])
            #expect(
                try await place.story().sorted() == [
                    "drop done", "drop replaced", "drop replaced", "hold scheduled", "hold scheduled", "hold scheduled",
                    "push wanted",
                ])
        }
    }

    @Test func `what is due already is said now, and what is over is not`() async throws {
        try await run(Self.scheduled) { (place: Place) async throws in
            #expect(try await place.thing("a", for: "2026-01-10T13:00:00Z") == ["1: a"])
            #expect(try await place.thing("b", for: "2026-01-10T11:00:00Z") == [])
            #expect(try await place.story().sorted() == ["drop too-late", "push wanted"])
        }
    }

    @Test func `people who want nothing when it is due hear nothing`() async throws {
        try await run(#"{ type: news, item: "{{name}}", schedule: { at: at } }"#) { (place: Place) async throws in
            try await place.thing("a")
            try await place.pool.execute(
                #"INSERT INTO rules.person (app, user_id, settings) VALUES ('test', '1', '{"types":{"news":false}}')"#)
            place.clock.set(moment("2026-01-20T12:00:00Z"))
            #expect(try await place.pass() == [])
            #expect(try await place.count("rules.inbox") == 1)
            #expect(try await place.story() == ["hold scheduled", "inbox type-off"])
        }
    }

    // MARK: Digests

    @Test func `a window gathers, and a full one does not wait`() async throws {
        let digest =
            #"{ digest: { after: 15m, count: 3, keep: { name: "{{name}}" }, say: { body: "{{count}}:{{#items}} {{name}}{{/items}}" } } }"#
        try await run(digest, say: "{}") { (place: Place) async throws in
            for name in ["a", "b"] {
                #expect(try await place.thing(name) == [])
                place.clock.advance(.seconds(1))
            }
            place.clock.advance(.seconds(897))
            #expect(try await place.pass() == [])
            place.clock.advance(.seconds(1))
            #expect(try await place.pass() == ["1: 2: a b"])
            #expect(try await place.count("rules.digest_item") == 0)
            place.clock.advance(.seconds(3600))
            #expect(try await place.pass() == [])
            for name in ["c", "d", "e"] {
                try await place.thing(name)
                place.clock.advance(.seconds(1))
            }
            #expect(try await place.pass() == ["1: 3: c d e"])
            #expect(try await place.count("rules.inbox") == 2)
        }
    }

    @Test func `what a cap does not allow is summed up`() async throws {
        let policy =
            #"{ caps: hourly, surplus: digest, digest: { after: 30m, say: { body: "{{count}} more" } } }"#
        try await run(policy) { (place: Place) async throws in
            for name in ["a", "b"] { #expect(try await place.thing(name) == ["1: \(name)"]) }
            for name in ["c", "d", "e"] { #expect(try await place.thing(name) == []) }
            place.clock.advance(.seconds(1800))
            #expect(try await place.pass() == ["1: 3 more"])
            // Each by itself is in the inbox, and what sums them up is not.
            #expect(try await place.count("rules.inbox") == 5)
            place.clock.advance(.seconds(7200))
            #expect(try await place.pass() == [])
        }
    }

    @Test func `two processes close a bucket once`() async throws {
        let digest = #"{ digest: { after: 15m, say: { body: "{{count}}" } } }"#
        try await run(digest, say: "{}") { (place: Place) async throws in
            let users = (1...50).map(String.init).joined(separator: ",")
            try await place.thing("a", users: "[\(users)]")
            try await place.thing("b", users: "[\(users)]")
            place.clock.advance(.seconds(900))
            try await withThrowingDiscardingTaskGroup { group in
                for _ in 0..<4 {
                    group.addTask {
                        try await place.bundler.closeDue()
                        try await place.releaser.releaseDue()
                    }
                }
            }
            try await place.bundler.closeDue()
            try await place.releaser.releaseDue()
            let told = try place.bus.messages(in: WorkQueue.registryNotifications(.interactive).name)
                .map { try Self.told($0.body) }
            #expect(told.count == 50)
            #expect(Set(told).count == 50)
            #expect(told.allSatisfy { $0.hasSuffix(": 2") })
        }
    }

    @Test func `an event that comes again is not gathered again`() async throws {
        let digest = #"{ digest: { after: 15m, say: { body: "{{count}}" } } }"#
        try await run(digest, say: "{}") { (place: Place) async throws in
            for _ in 0..<3 { try await place.thing("a", id: "same") }
            place.clock.advance(.seconds(900))
            #expect(try await place.pass() == ["1: 1"])
            try await place.thing("a", id: "same")
            place.clock.advance(.seconds(900))
            #expect(try await place.pass() == [])
        }
    }

    // MARK: Once

    @Test func `the same is not said twice within its time`() async throws {
        try await run(#"{ dedupe: { key: "{{name}}", within: 1h } }"#) { (place: Place) async throws in
            #expect(try await place.thing("a") == ["1: a"])
            #expect(try await place.thing("a", users: "[1,2]") == ["2: a"])
            #expect(try await place.thing("b") == ["1: b"])
            place.clock.advance(.seconds(3600))
            #expect(try await place.thing("a") == ["1: a"])
            #expect(try await place.story().filter { $0 == "drop repeated" }.count == 1)
            #expect(try await place.count("rules.inbox") == 4)
        }
    }

    // MARK: Reports

    @Test func `upstream is told what became of it, as often as that is news`() async throws {
        try await run("{ report: true }") { (place: Place) async throws in
            let store = ReportStore(pool: place.pool)
            func news() async throws -> [String] {
                let reports = try await store.take(now: place.clock.now)
                try await store.told(reports)
                return reports.map { "\($0.event) \($0.user) \($0.isPushSent) \($0.devices) \($0.isFailed)" }
            }
            func answer(_ answer: Outcome.Answer) async throws {
                let notification: UUID = try await place.pool.query("SELECT notification FROM rules.decision").single()
                let outcome = Outcome(
                    notification: notification, device: UUID(), answer: answer, at: place.clock.now, registeredAt: nil)
                try await OutcomeStore(pool: place.pool).keep(
                    [
                        Outcomes(
                            trace: Trace(id: UUID(), correlation: "e-7", causation: "e-7"),
                            app: AppID(rawValue: "test")!, origin: .apns, environment: .production, lane: .interactive,
                            outcomes: [outcome])
                    ], now: place.clock.now)
            }
            try await place.thing("a", id: "e-7")
            #expect(try await news() == ["e-7 1 false 0 false"])
            #expect(try await news() == [])
            try await answer(.rejected(reason: "PayloadEmpty", suspectToken: false))
            #expect(try await news() == ["e-7 1 true 0 true"])
            for _ in 0..<2 { try await answer(.accepted(id: nil)) }
            #expect(try await news() == ["e-7 1 true 2 false"])
            #expect(try await news() == [])
        }
    }

    @Test func `a report that nobody has bound a queue for is told, and one that is not confirmed is told again`()
        async throws
    {
        try await run("{ report: true }") { (place: Place) async throws in
            let reporter = Reporter(
                service: "rules", store: ReportStore(pool: place.pool), bus: place.bus, now: { place.clock.now },
                logger: Logger(label: "tests"))
            try await place.thing("a", id: "e-7")
            place.bus.answer(publishesTo: .notifications, with: [.nacked])
            try await reporter.report()
            #expect(try await place.count("rules.report WHERE due_at IS NOT NULL") == 1)
            place.clock.advance(ReportStore.lease)
            try await reporter.report()
            #expect(try await place.count("rules.report WHERE due_at IS NOT NULL") == 0)
        }
    }

    @Test func `a report is an event that says what the document asks for`() throws {
        let report = DeliveryReport(
            notification: UUID(uuidString: "6f1f8f5e-53f2-5b0c-9d0a-0b1de15c7c3a")!, app: AppID(rawValue: "test")!,
            user: user("u"), rule: "only", event: "e-1", dueAt: Self.start, isPushSent: true, devices: 2,
            isFailed: false)
        let event = try CloudEvents.decode(
            routingKey: "test.x", contentType: CloudEvents.structuredContentType, headers: [:],
            body: try report.body(at: Self.start))
        #expect(event.type == "heliograph.notification.reported")
        #expect(
            event.data == [
                "notification_id": "6f1f8f5e-53f2-5b0c-9d0a-0b1de15c7c3a", "event_id": "e-1", "user_id": "u",
                "rule": "only", "push_sent": true, "devices_notified": 2, "failed": false,
            ])
        var later = report
        later.devices = 3
        #expect(later.id != report.id)
    }
}
