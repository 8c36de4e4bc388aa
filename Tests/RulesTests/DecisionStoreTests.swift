import AMQP
import Foundation
import Logging
import Messaging
import Postgres
import PushProtocol
import Synchronization
import TestSupport
import Testing

@testable import Rules

/// Decisions and what follows from them, on a real database.
@Suite(.timeLimit(.minutes(4))) struct DecisionStoreTests {
    static let now = moment("2026-01-10T12:00:00Z")
    static let rules = """
        app: test
        zone: Europe/Berlin
        types:
          chat: { about: Messages }
        caps:
          hourly: { at-most: 4, within: 1h }
        events:
          thing.happened:
            examples: [{ users: [1], name: Pat, room: 1 }]
        rules:
          only:
            when: { event: thing.happened }
            to: { users: users }
            say: { body: "{{name}}" }
            how: { sound: default, thread: "{{room}}", expires-after: 2d }
            policy: { type: chat, mutes: "room/{{room}}", presence: thread, caps: hourly, quiet-hours: hold }
        """

    /// A moment that tests move.
    final class Clock: Sendable {
        private let moment: Mutex<Timestamp>
        init(_ start: Timestamp) { moment = Mutex(start) }
        var now: Timestamp { moment.withLock { $0 } }
        func advance(_ duration: Duration) { moment.withLock { $0 = $0 + duration } }
        func set(_ now: Timestamp) { moment.withLock { $0 = now } }
    }

    struct House: Sendable {
        let pool: PostgresPool
        let clock = Clock(DecisionStoreTests.now)
        let book: RuleBook

        init(_ pool: PostgresPool, rules: String = DecisionStoreTests.rules) throws {
            self.pool = pool
            book = RuleBook([try parse(rules)])
        }

        /// Users who are told at once, by event.
        func happen(_ ids: String..., users: String = "[1]", room: Int = 1) async throws -> [[String]] {
            let handler = EventHandler(
                shelf: RuleShelf(book), store: DecisionStore(pool: pool, spread: .zero), now: { clock.now })
            let deliveries = try ids.map { id in
                let inbound = delivered(cloudEvent(id: id, data: #"{"users":\#(users),"name":"Pat","room":\#(room)}"#))
                return Delivery(inbound: inbound.at(clock.now), message: try handler.decode(inbound))
            }
            return try await handler.handle(deliveries).map { try $0.outbound.flatMap { try told(in: $0.body) } }
        }

        func told(in body: [UInt8]) throws -> [String] {
            let notification = try Notification.decode(wireBody: body)
            let quiet = notification.content.interruptionLevel == .passive ? " quietly" : ""
            return notification.recipients.map { $0.user.rawValue + quiet }
        }

        /// Users who are told what had been held.
        func release(on bus: InMemoryBus = InMemoryBus(apps: [AppID(rawValue: "test")!])) async throws -> [String] {
            let before = bus.messages(in: WorkQueue.registryNotifications(.interactive).name).count
            try await releaser(bus).releaseDue()
            return try bus.messages(in: WorkQueue.registryNotifications(.interactive).name).dropFirst(before)
                .flatMap { try told(in: $0.body) }.sorted()
        }

        func releaser(_ bus: InMemoryBus) -> Releaser {
            Releaser(
                service: "rules", store: HeldStore(pool: pool, spread: .zero), shelf: RuleShelf(book), bus: bus,
                bulkThrottle: BulkThrottle(pauseFactor: 1), now: { clock.now }, logger: .init(label: "tests"))
        }

        func choose(_ settings: PersonalSettings, user: String = "1") async throws {
            let text = String(decoding: try WireCoding.encode(settings), as: UTF8.self)
            try await pool.execute(
                """
                INSERT INTO rules.person (app, user_id, settings) VALUES ('test', \(user), \(text)::jsonb)
                ON CONFLICT (app, user_id) DO UPDATE SET settings = EXCLUDED.settings
                """)
        }

        /// `step answer reason` of every decision about a user, in order.
        func story(_ user: String = "1") async throws -> [String] {
            var story: [String] = []
            for row in try await pool.query(
                """
                SELECT step || ' ' || answer || ' ' || reason FROM rules.decision WHERE user_id = \(user)
                ORDER BY decided_at, step
                """)
            { story.append(try row.decode(String.self, at: 0)) }
            return story
        }

        func inbox(_ user: String = "1") async throws -> Int {
            try await pool.query("SELECT count(*) FROM rules.inbox WHERE user_id = \(user)").single()
        }

        func held() async throws -> Int { try await RulesDatabase.count("rules.held", pool) }
    }

    func withHouse(
        _ rules: String = DecisionStoreTests.rules, _ body: (House) async throws -> Void
    ) async throws {
        try await RulesDatabase.withPool { pool in try await body(House(pool, rules: rules)) }
    }

    static let night = QuietHours(days: Set(Weekday.allCases), start: clock("13:00"), end: clock("15:30"))

    @Test func `four an hour are pushed, the rest is in the inbox, and it says why`() async throws {
        try await withHouse { (house: House) async throws in
            #expect(try await house.happen("a", "b", "c", "d", "e", "f") == [["1"], ["1"], ["1"], ["1"], [], []])
            #expect(try await house.inbox() == 6)
            #expect(try await house.story().filter { $0 == "0 inbox capped" }.count == 2)
            house.clock.advance(.seconds(3600))
            #expect(try await house.happen("g") == [["1"]])
            #expect(try await house.happen("h", users: "[1,2]") == [["1", "2"]])
        }
    }

    @Test func `an event that comes again is not decided again, and charges nobody`() async throws {
        try await withHouse { (house: House) async throws in
            for _ in 0..<6 { #expect(try await house.happen("a") == [["1"]]) }
            #expect(try await house.happen("b", "c", "d", "e") == [["1"], ["1"], ["1"], []])
            // What was not pushed at first is not pushed when it comes again, although there would be room now.
            house.clock.advance(.seconds(7200))
            #expect(try await house.happen("e") == [[]])
            #expect(try await house.inbox() == 5)
            #expect(try await RulesDatabase.counts(house.pool) == [5, 5, 0])
        }
    }

    @Test func `two stages that decide about a person at once leave no more than the cap allows`() async throws {
        try await withHouse { (house: House) async throws in
            let pushed = try await withThrowingTaskGroup(of: Int.self) { group in
                for task in 0..<4 {
                    group.addTask {
                        var pushed = 0
                        for number in 0..<5 {
                            pushed += try await house.happen("e-\(task)-\(number)", users: "[3,1,2]").joined().count
                        }
                        return pushed
                    }
                }
                return try await group.reduce(0, +)
            }
            #expect(pushed == 12)
            let logs: [String] = try await house.pool.query("SELECT logs::text FROM rules.person").map {
                try $0.decode(String.self, at: 0)
            }
            #expect(logs.count == 3)
            #expect(try await house.inbox("2") == 20)
        }
    }

    @Test func `in quiet hours it waits for their end, and is pushed once`() async throws {
        try await withHouse { (house: House) async throws in
            try await house.choose(PersonalSettings(quietHours: Self.night))
            #expect(try await house.happen("a", users: "[1,2]") == [["2"]])
            #expect(try await house.held() == 1)
            #expect(try await house.inbox() == 1)
            #expect(try await house.release() == [])
            house.clock.set(moment("2026-01-10T14:29:59Z"))
            #expect(try await house.release() == [])
            house.clock.set(moment("2026-01-10T14:30:00Z"))
            #expect(try await house.release() == ["1"])
            #expect(try await house.release() == [])
            #expect(try await house.held() == 0)
            #expect(try await house.story() == ["0 hold quiet-hours", "1 push wanted"])
            // The event itself is done with: nothing of it is left to publish.
            #expect(try await house.happen("a", users: "[1,2]") == [["2"]])
        }
    }

    @Test func `what is let go counts against caps when it is pushed, not when it is held`() async throws {
        try await withHouse { (house: House) async throws in
            try await house.choose(PersonalSettings(quietHours: Self.night))
            #expect(try await house.happen("a", "b", "c", "d", "e", "f").joined().isEmpty)
            house.clock.set(moment("2026-01-10T14:30:00Z"))
            #expect(try await house.release() == ["1", "1", "1", "1"])
            #expect(try await house.story().filter { $0 == "1 inbox capped" }.count == 2)
            #expect(try await house.held() == 0)
            #expect(try await house.inbox() == 6)
        }
    }

    @Test func `who switched off meanwhile is not pushed at the end of quiet hours`() async throws {
        try await withHouse { (house: House) async throws in
            try await house.choose(PersonalSettings(quietHours: Self.night))
            _ = try await house.happen("a")
            try await house.choose(PersonalSettings(isOn: false))
            house.clock.set(moment("2026-01-10T14:30:00Z"))
            #expect(try await house.release() == [])
            #expect(try await house.story() == ["0 hold quiet-hours", "1 inbox switched-off"])
        }
    }

    @Test func `who travels stays undisturbed, twice at most`() async throws {
        try await withHouse { (house: House) async throws in
            try await house.choose(PersonalSettings(quietHours: Self.night))
            _ = try await house.happen("a")
            // Half past three in Berlin is half past one in the Azores.
            try await house.choose(PersonalSettings(quietHours: Self.night, zone: zone("Atlantic/Azores")))
            house.clock.set(moment("2026-01-10T14:30:00Z"))
            #expect(try await house.release() == [])
            #expect(try await house.held() == 1)
            house.clock.set(moment("2026-01-10T16:30:00Z"))
            #expect(try await house.release() == ["1"])
            #expect(try await house.story() == ["0 hold quiet-hours", "1 hold quiet-hours", "2 push wanted"])
        }
    }

    @Test func `what the broker has not confirmed is published again under the same ids, and charged once`()
        async throws
    {
        try await withHouse { (house: House) async throws in
            try await house.choose(PersonalSettings(quietHours: Self.night))
            _ = try await house.happen("a")
            house.clock.set(moment("2026-01-10T14:30:00Z"))
            let store = HeldStore(pool: house.pool, spread: .zero)
            // A process that dies between its commit and the broker's word.
            let lent = try await store.release(by: house.book, now: house.clock.now)
            #expect(lent.releases.count == 1)
            #expect(try await house.release() == [])
            house.clock.advance(HeldStore.lease)
            let again = try await store.release(by: house.book, now: house.clock.now)
            #expect(again.releases.map(\.recipient) == lent.releases.map(\.recipient))
            house.clock.advance(HeldStore.lease)
            #expect(try await house.release() == ["1"])
            #expect(try await house.held() == 0)
            let log: String = try await house.pool.query("SELECT logs::text FROM rules.person").single()
            #expect(log.split(separator: ",").count == 1)
            #expect(try await house.story() == ["0 hold quiet-hours", "1 push wanted"])
        }
    }

    @Test func `what the broker does not take stays held, and is published when its lease is over`() async throws {
        try await withHouse { (house: House) async throws in
            try await house.choose(PersonalSettings(quietHours: Self.night))
            _ = try await house.happen("a")
            house.clock.set(moment("2026-01-10T14:30:00Z"))
            let bus = InMemoryBus(apps: [AppID(rawValue: "test")!])
            for answer in [AMQPConfirmation.nacked, .returned(code: 312, text: "NO_ROUTE")] {
                bus.answer(publishesTo: .notifications, with: [answer])
                #expect(try await house.release(on: bus) == [])
                #expect(try await house.held() == 1)
                house.clock.advance(HeldStore.lease)
            }
            #expect(try await house.release(on: bus) == ["1"])
            #expect(try await house.held() == 0)
        }
    }

    @Test func `many processes let go of what is due, each once`() async throws {
        try await withHouse { (house: House) async throws in
            for user in 1...60 { try await house.choose(PersonalSettings(quietHours: Self.night), user: "\(user)") }
            let users = (1...60).map(String.init).joined(separator: ",")
            _ = try await house.happen("a", users: "[\(users)]")
            #expect(try await house.held() == 60)
            house.clock.set(moment("2026-01-10T14:30:00Z"))
            let bus = InMemoryBus(apps: [AppID(rawValue: "test")!])
            try await withThrowingDiscardingTaskGroup { group in
                for _ in 0..<4 { group.addTask { try await house.releaser(bus).releaseDue() } }
            }
            let told = try bus.messages(in: WorkQueue.registryNotifications(.interactive).name)
                .flatMap { try house.told(in: $0.body) }
            #expect(told.count == 60)
            #expect(Set(told).count == 60)
            #expect(try await house.held() == 0)
        }
    }

    @Test func `a rule that is gone leaves what it held to the inbox`() async throws {
        try await withHouse { (house: House) async throws in
            try await house.choose(PersonalSettings(quietHours: Self.night))
            _ = try await house.happen("a")
            let other = try House(house.pool, rules: Self.rules.replacing("  only:", with: "  other:"))
            other.clock.set(moment("2026-01-10T14:30:00Z"))
            #expect(try await other.release() == [])
            #expect(try await other.story() == ["0 hold quiet-hours", "1 inbox rule-gone"])
        }
    }

    @Test func `quiet hours can whisper`() async throws {
        try await withHouse(Self.rules.replacing("quiet-hours: hold", with: "quiet-hours: silent")) {
            (house: House) async throws in
            try await house.choose(PersonalSettings(quietHours: Self.night))
            #expect(try await house.happen("a", users: "[1,2]") == [["2", "1 quietly"]])
            #expect(try await house.happen("a", users: "[1,2]") == [["2", "1 quietly"]])
        }
    }

    @Test func `who looks at the thread finds it in the inbox only`() async throws {
        try await withHouse { (house: House) async throws in
            for (user, viewing) in [("1", "1"), ("2", "2")] {
                try await house.pool.execute(
                    """
                    INSERT INTO rules.presence VALUES ('test', \(user), 'phone', \(viewing), \(house.clock.now.date)
                        + interval '45 s')
                    """)
            }
            #expect(try await house.happen("a", users: "[1,2]") == [["2"]])
            house.clock.advance(.seconds(46))
            #expect(try await house.happen("b", users: "[1,2]") == [["1", "2"]])
            #expect(try await house.story() == ["0 inbox viewing", "0 push wanted"])
        }
    }

    @Test func `a thread is muted until then`() async throws {
        try await withHouse { (house: House) async throws in
            let mute = PersonalSettings.Mute(isMuted: true, until: Self.now + .seconds(3600))
            try await house.choose(PersonalSettings(mutes: ["room/1": mute]))
            #expect(try await house.happen("a") == [[]])
            #expect(try await house.happen("b", room: 2) == [["1"]])
            house.clock.advance(.seconds(3600))
            #expect(try await house.happen("c") == [["1"]])
        }
    }

    @Test func `settings are stored as they were chosen`() throws {
        let settings = PersonalSettings(
            isOn: false, types: ["chat": false],
            mutes: ["a": .init(isMuted: true, until: Self.now), "b": .init(isMuted: false)], quietHours: Self.night,
            zone: zone("Asia/Kolkata"))
        let bytes = try WireCoding.encode(settings)
        #expect(try WireCoding.decode(PersonalSettings.self, from: bytes) == settings)
        #expect(try WireCoding.encode(PersonalSettings()) == Array("{}".utf8))
        #expect(throws: WireError.self) {
            try WireCoding.decode(PersonalSettings.self, from: Array(#"{"zone":"Nowhere/None"}"#.utf8))
        }
    }
}

extension Inbound {
    func at(_ moment: Timestamp) -> Inbound {
        Inbound(
            queue: queue, exchange: exchange, routingKey: routingKey, contentType: contentType, headers: headers,
            body: body, redelivered: redelivered, firstSeen: moment)
    }
}
