import AMQP
import Foundation
import Logging
import Messaging
import Postgres
import PushProtocol
import Synchronization
import Testing
import TestSupport

@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// Decisions and their effects on a real database.
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

    /// A clock that tests set.
    final class Clock: Sendable {
        private let moment: Mutex<Timestamp>
        init(_ start: Timestamp) { moment = Mutex(start) }
        var now: Timestamp { moment.withLock { $0 } }
        func advance(_ duration: Duration) { moment.withLock { $0 = $0 + duration } }
        func set(_ now: Timestamp) { moment.withLock { $0 = now } }
    }

    struct DecisionFixture: Sendable {
        let pool: PostgresPool
        let clock = Clock(DecisionStoreTests.now)
        let ruleSets: RuleSets

        init(_ pool: PostgresPool, rules: String = DecisionStoreTests.rules) throws {
            self.pool = pool
            ruleSets = RuleSets([try parse(rules)])
        }

        /// The users that each event notifies at once.
        func handleEvent(_ ids: String..., users: String = "[1]", room: Int = 1) async throws -> [[String]] {
            let handler = EventHandler(
                currentRules: CurrentRules(ruleSets), store: DecisionStore(pool: pool, spread: .zero),
                now: { clock.now })
            let deliveries = try ids.map { id in
                let inbound = delivered(cloudEvent(id: id, data: #"{"users":\#(users),"name":"Pat","room":\#(room)}"#))
                return Delivery(inbound: inbound.at(clock.now), message: try handler.decode(inbound))
            }
            return try await handler.handle(deliveries).map { try $0.outbound.flatMap { try recipients(in: $0.body) } }
        }

        func recipients(in body: [UInt8]) throws -> [String] {
            let notification = try Notification.decode(wireBody: body)
            let quiet = notification.content.interruptionLevel == .passive ? " quietly" : ""
            return notification.recipients.map { $0.user.rawValue + quiet }
        }

        /// Publishes due held notifications, and returns their users.
        func release(on bus: InMemoryBus = InMemoryBus(apps: [AppID(rawValue: "test")!])) async throws -> [String] {
            let before = bus.messages(in: WorkQueue.registryNotifications(.interactive).name).count
            try await scheduledSendWorker(bus).releaseDue()
            return try bus.messages(in: WorkQueue.registryNotifications(.interactive).name).dropFirst(before)
                .flatMap { try recipients(in: $0.body) }.sorted()
        }

        func scheduledSendWorker(_ bus: InMemoryBus) -> ScheduledSendWorker {
            ScheduledSendWorker(
                service: "rules", store: HeldStore(pool: pool, spread: .zero), currentRules: CurrentRules(ruleSets),
                bus: bus,
                bulkThrottle: BulkThrottle(pauseFactor: 1), now: { clock.now }, logger: .init(label: "tests"))
        }

        func setPreferences(_ settings: PersonalSettings, user: String = "1") async throws {
            let text = String(decoding: try WireCoding.encode(settings), as: UTF8.self)
            try await pool.execute(
                """
                INSERT INTO rules.person (app, user_id, settings) VALUES ('test', \(user), \(text)::jsonb)
                ON CONFLICT (app, user_id) DO UPDATE SET settings = EXCLUDED.settings
                """)
        }

        /// `step answer reason` of each decision about a user, in order.
        func decisionLog(_ user: String = "1") async throws -> [String] {
            var decisionLog: [String] = []
            for row in try await pool.query(
                """
                SELECT step || ' ' || answer || ' ' || reason FROM rules.decision WHERE user_id = \(user)
                ORDER BY decided_at, step
                """)
            { decisionLog.append(try row.decode(String.self, at: 0)) }
            return decisionLog
        }

        func inbox(_ user: String = "1") async throws -> Int {
            try await pool.query("SELECT count(*) FROM rules.inbox WHERE user_id = \(user)").single()
        }

        func held() async throws -> Int { try await RulesDatabase.count("rules.held", pool) }
    }

    func withFixture(
        _ rules: String = DecisionStoreTests.rules, _ body: (DecisionFixture) async throws -> Void
    ) async throws {
        try await RulesDatabase.withPool { pool in try await body(DecisionFixture(pool, rules: rules)) }
    }

    static let night = QuietHours(days: Set(Weekday.allCases), start: clock("13:00"), end: clock("15:30"))

    @Test func `four an hour are pushed, and the others go to the inbox with a reason`() async throws {
        try await withFixture { (fixture: DecisionFixture) async throws in
            #expect(
                try await fixture.handleEvent("a", "b", "c", "d", "e", "f") == [["1"], ["1"], ["1"], ["1"], [], []])
            #expect(try await fixture.inbox() == 6)
            #expect(try await fixture.decisionLog().filter { $0 == "0 inbox capped" }.count == 2)
            fixture.clock.advance(.seconds(3600))
            #expect(try await fixture.handleEvent("g") == [["1"]])
            #expect(try await fixture.handleEvent("h", users: "[1,2]") == [["1", "2"]])
        }
    }

    @Test func `a repeated event is not decided again and charges no cap`() async throws {
        try await withFixture { (fixture: DecisionFixture) async throws in
            for _ in 0..<6 { #expect(try await fixture.handleEvent("a") == [["1"]]) }
            #expect(try await fixture.handleEvent("b", "c", "d", "e") == [["1"], ["1"], ["1"], []])
            // A notification that was not pushed stays so on a repeat, even if the cap allows it now.
            fixture.clock.advance(.seconds(7200))
            #expect(try await fixture.handleEvent("e") == [[]])
            #expect(try await fixture.inbox() == 5)
            #expect(try await RulesDatabase.counts(fixture.pool) == [5, 5, 0])
        }
    }

    @Test func `two stages deciding about one user concurrently respect the cap`() async throws {
        try await withFixture { (fixture: DecisionFixture) async throws in
            let pushed = try await withThrowingTaskGroup(of: Int.self) { group in
                for task in 0..<4 {
                    group.addTask {
                        var pushed = 0
                        for number in 0..<5 {
                            pushed += try await fixture.handleEvent("e-\(task)-\(number)", users: "[3,1,2]").joined()
                                .count
                        }
                        return pushed
                    }
                }
                return try await group.reduce(0, +)
            }
            #expect(pushed == 12)
            let capHistory: [String] = try await fixture.pool.query("SELECT logs::text FROM rules.person").map {
                try $0.decode(String.self, at: 0)
            }
            #expect(capHistory.count == 3)
            #expect(try await fixture.inbox("2") == 20)
        }
    }

    @Test func `in quiet hours, a notification is held until their end and pushed once`() async throws {
        try await withFixture { (fixture: DecisionFixture) async throws in
            try await fixture.setPreferences(PersonalSettings(quietHours: Self.night))
            #expect(try await fixture.handleEvent("a", users: "[1,2]") == [["2"]])
            #expect(try await fixture.held() == 1)
            #expect(try await fixture.inbox() == 1)
            #expect(try await fixture.release() == [])
            fixture.clock.set(moment("2026-01-10T14:29:59Z"))
            #expect(try await fixture.release() == [])
            fixture.clock.set(moment("2026-01-10T14:30:00Z"))
            #expect(try await fixture.release() == ["1"])
            #expect(try await fixture.release() == [])
            #expect(try await fixture.held() == 0)
            #expect(try await fixture.decisionLog() == ["0 hold quiet-hours", "1 push wanted"])
            // The event is complete: it has nothing left to publish.
            #expect(try await fixture.handleEvent("a", users: "[1,2]") == [["2"]])
        }
    }

    @Test func `a held notification is charged to caps when it is pushed`() async throws {
        try await withFixture { (fixture: DecisionFixture) async throws in
            try await fixture.setPreferences(PersonalSettings(quietHours: Self.night))
            #expect(try await fixture.handleEvent("a", "b", "c", "d", "e", "f").joined().isEmpty)
            fixture.clock.set(moment("2026-01-10T14:30:00Z"))
            #expect(try await fixture.release() == ["1", "1", "1", "1"])
            #expect(try await fixture.decisionLog().filter { $0 == "1 inbox capped" }.count == 2)
            #expect(try await fixture.held() == 0)
            #expect(try await fixture.inbox() == 6)
        }
    }

    @Test func `a type disabled during quiet hours is not pushed at their end`() async throws {
        try await withFixture { (fixture: DecisionFixture) async throws in
            try await fixture.setPreferences(PersonalSettings(quietHours: Self.night))
            _ = try await fixture.handleEvent("a")
            try await fixture.setPreferences(PersonalSettings(isOn: false))
            fixture.clock.set(moment("2026-01-10T14:30:00Z"))
            #expect(try await fixture.release() == [])
            #expect(try await fixture.decisionLog() == ["0 hold quiet-hours", "1 inbox switched-off"])
        }
    }

    @Test func `a zone change extends quiet hours twice at most`() async throws {
        try await withFixture { (fixture: DecisionFixture) async throws in
            try await fixture.setPreferences(PersonalSettings(quietHours: Self.night))
            _ = try await fixture.handleEvent("a")
            // 03:30 in Berlin is 01:30 in the Azores.
            try await fixture.setPreferences(PersonalSettings(quietHours: Self.night, zone: zone("Atlantic/Azores")))
            fixture.clock.set(moment("2026-01-10T14:30:00Z"))
            #expect(try await fixture.release() == [])
            #expect(try await fixture.held() == 1)
            fixture.clock.set(moment("2026-01-10T16:30:00Z"))
            #expect(try await fixture.release() == ["1"])
            #expect(try await fixture.decisionLog() == ["0 hold quiet-hours", "1 hold quiet-hours", "2 push wanted"])
        }
    }

    @Test func `an unconfirmed notification is published again under the same id and charged once`()
        async throws
    {
        try await withFixture { (fixture: DecisionFixture) async throws in
            try await fixture.setPreferences(PersonalSettings(quietHours: Self.night))
            _ = try await fixture.handleEvent("a")
            fixture.clock.set(moment("2026-01-10T14:30:00Z"))
            let store = HeldStore(pool: fixture.pool, spread: .zero)
            // The process crashes between its commit and the broker's confirm.
            let lent = try await store.release(by: fixture.ruleSets, now: fixture.clock.now)
            #expect(lent.released.count == 1)
            // The end of quiet hours, not the time of the event.
            #expect(lent.released.first?.wasDueAt == moment("2026-01-10T14:30:00Z"))
            #expect(try await fixture.release() == [])
            fixture.clock.advance(HeldStore.lease)
            let again = try await store.release(by: fixture.ruleSets, now: fixture.clock.now)
            #expect(again.released.map(\.recipient) == lent.released.map(\.recipient))
            fixture.clock.advance(HeldStore.lease)
            #expect(try await fixture.release() == ["1"])
            #expect(try await fixture.held() == 0)
            let log: String = try await fixture.pool.query("SELECT logs::text FROM rules.person").single()
            #expect(log.split(separator: ",").count == 1)
            #expect(try await fixture.decisionLog() == ["0 hold quiet-hours", "1 push wanted"])
        }
    }

    @Test func `a refused notification stays held and is published after its lease`() async throws {
        try await withFixture { (fixture: DecisionFixture) async throws in
            try await fixture.setPreferences(PersonalSettings(quietHours: Self.night))
            _ = try await fixture.handleEvent("a")
            fixture.clock.set(moment("2026-01-10T14:30:00Z"))
            let bus = InMemoryBus(apps: [AppID(rawValue: "test")!])
            for answer in [AMQPConfirmation.nacked, .returned(code: 312, text: "NO_ROUTE")] {
                bus.answer(publishesTo: .notifications, with: [answer])
                #expect(try await fixture.release(on: bus) == [])
                #expect(try await fixture.held() == 1)
                fixture.clock.advance(HeldStore.lease)
            }
            #expect(try await fixture.release(on: bus) == ["1"])
            #expect(try await fixture.held() == 0)
        }
    }

    @Test func `several processes publish each due notification once`() async throws {
        try await withFixture { (fixture: DecisionFixture) async throws in
            for user in 1...60 {
                try await fixture.setPreferences(PersonalSettings(quietHours: Self.night), user: "\(user)")
            }
            let users = (1...60).map(String.init).joined(separator: ",")
            _ = try await fixture.handleEvent("a", users: "[\(users)]")
            #expect(try await fixture.held() == 60)
            fixture.clock.set(moment("2026-01-10T14:30:00Z"))
            let bus = InMemoryBus(apps: [AppID(rawValue: "test")!])
            try await withThrowingDiscardingTaskGroup { group in
                for _ in 0..<4 { group.addTask { try await fixture.scheduledSendWorker(bus).releaseDue() } }
            }
            let published = try bus.messages(in: WorkQueue.registryNotifications(.interactive).name)
                .flatMap { try fixture.recipients(in: $0.body) }
            #expect(published.count == 60)
            #expect(Set(published).count == 60)
            #expect(try await fixture.held() == 0)
        }
    }

    @Test func `notifications held by a removed rule stay in the inbox only`() async throws {
        try await withFixture { (fixture: DecisionFixture) async throws in
            try await fixture.setPreferences(PersonalSettings(quietHours: Self.night))
            _ = try await fixture.handleEvent("a")
            let other = try DecisionFixture(fixture.pool, rules: Self.rules.replacing("  only:", with: "  other:"))
            other.clock.set(moment("2026-01-10T14:30:00Z"))
            #expect(try await other.release() == [])
            #expect(try await other.decisionLog() == ["0 hold quiet-hours", "1 inbox rule-gone"])
        }
    }

    @Test func `quiet hours can deliver silently`() async throws {
        try await withFixture(Self.rules.replacing("quiet-hours: hold", with: "quiet-hours: silent")) {
            (fixture: DecisionFixture) async throws in
            try await fixture.setPreferences(PersonalSettings(quietHours: Self.night))
            #expect(try await fixture.handleEvent("a", users: "[1,2]") == [["2", "1 quietly"]])
            #expect(try await fixture.handleEvent("a", users: "[1,2]") == [["2", "1 quietly"]])
        }
    }

    @Test func `a user viewing the thread gets the inbox item only`() async throws {
        try await withFixture { (fixture: DecisionFixture) async throws in
            for (user, viewing) in [("1", "1"), ("2", "2")] {
                try await fixture.pool.execute(
                    """
                    INSERT INTO rules.presence VALUES ('test', \(user), 'phone', \(viewing), \(fixture.clock.now.date)
                        + interval '45 s')
                    """)
            }
            #expect(try await fixture.handleEvent("a", users: "[1,2]") == [["2"]])
            fixture.clock.advance(.seconds(46))
            #expect(try await fixture.handleEvent("b", users: "[1,2]") == [["1", "2"]])
            #expect(try await fixture.decisionLog() == ["0 inbox viewing", "0 push wanted"])
        }
    }

    @Test func `a thread mute ends at its time`() async throws {
        try await withFixture { (fixture: DecisionFixture) async throws in
            let mute = PersonalSettings.Mute(isMuted: true, until: Self.now + .seconds(3600))
            try await fixture.setPreferences(PersonalSettings(mutes: ["room/1": mute]))
            #expect(try await fixture.handleEvent("a") == [[]])
            #expect(try await fixture.handleEvent("b", room: 2) == [["1"]])
            fixture.clock.advance(.seconds(3600))
            #expect(try await fixture.handleEvent("c") == [["1"]])
        }
    }

    @Test func `settings are stored unchanged`() throws {
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
