import AMQP
import Foundation
import Logging
import Messaging
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// Users' settings, caps, quiet hours, schedules and inboxes apply to direct notifications as to those of rule files.
@Suite(.timeLimit(.minutes(4))) struct DirectDecisionTests {
    static let rules = """
        app: test
        zone: Europe/Berlin
        types:
          chat: { about: Messages }
          alarm: { about: Help, critical: true }
        caps:
          direct: { at-most: 2, within: 1h }
        events:
          thing.happened: { examples: [{ users: [1] }] }
        rules:
          only:
            when: { event: thing.happened }
            to: { users: users }
            say: { body: Hello }
        """

    typealias Fixture = DecisionStoreTests.DecisionFixture

    func withFixture(_ body: (Fixture) async throws -> Void) async throws {
        try await RulesDatabase.withPool { pool in try await body(Fixture(pool, rules: Self.rules)) }
    }

    @Test func `a type or pushes that are off leave the inbox entry`() async throws {
        try await withFixture { (fixture: Fixture) async throws in
            try await fixture.setPreferences(PersonalSettings(types: ["direct": false]))
            #expect(try await fixture.send("a") == [])
            #expect(try await fixture.send("b", #""type": "chat""#) == ["1"])
            #expect(try await fixture.send("c", #""pushOnly": true"#) == [])
            #expect(
                try await fixture.decisionLog().sorted() == ["0 drop type-off", "0 inbox type-off", "0 push wanted"])
            #expect(try await fixture.inbox() == 2)
            try await fixture.setPreferences(PersonalSettings(isOn: false))
            #expect(try await fixture.send("d") == [])
            #expect(try await fixture.send("e", #""type": "alarm""#) == ["1"])
        }
    }

    @Test func `the file's cap “direct” counts direct notifications of every type`() async throws {
        try await withFixture { (fixture: Fixture) async throws in
            #expect(try await fixture.send("a") == ["1"])
            #expect(try await fixture.send("b", #""type": "chat""#) == ["1"])
            #expect(try await fixture.send("c") == [])
            #expect(try await fixture.inbox() == 3)
            // Without an inbox entry it would be lost, so it waits for the cap.
            #expect(try await fixture.send("d", #""pushOnly": true"#) == [])
            #expect(try await fixture.held() == 1)
            fixture.clock.advance(.seconds(3601))
            #expect(try await fixture.release() == ["1"])
            #expect(try await fixture.inbox() == 3)
        }
    }

    @Test func `quiet hours hold it, and a repeated event changes nothing`() async throws {
        try await withFixture { (fixture: Fixture) async throws in
            try await fixture.setPreferences(PersonalSettings(quietHours: DecisionStoreTests.night))
            #expect(try await fixture.send("a", #""type": "chat""#) == [])
            #expect(try await fixture.send("a", #""type": "chat""#) == [])
            fixture.clock.set(moment("2026-01-10T14:30:00Z"))
            #expect(try await fixture.release() == ["1"])
            #expect(try await fixture.send("a", #""type": "chat""#) == [])
            #expect(try await fixture.decisionLog() == ["0 hold quiet-hours", "1 push wanted"])
            let rules: [String] = try await fixture.pool.query("SELECT array_agg(rule) FROM rules.decision").single()
            #expect(rules == ["direct.chat", "direct.chat"])
        }
    }

    @Test func `a scheduled one is sent at its time, and not after its expiry`() async throws {
        try await withFixture { (fixture: Fixture) async throws in
            #expect(try await fixture.send("a", #""at": "2026-01-10T13:00:00Z", "ttl": 60"#) == [])
            #expect(try await fixture.send("b", #""at": "2026-01-10T13:00:00Z", "ttl": 600, "type": "chat""#) == [])
            #expect(try await fixture.inbox() == 0)
            fixture.clock.set(moment("2026-01-10T12:59:59Z"))
            #expect(try await fixture.release() == [])
            fixture.clock.set(moment("2026-01-10T13:05:00Z"))
            #expect(try await fixture.release() == ["1"])
            #expect(
                try await fixture.decisionLog().sorted() == [
                    "0 hold scheduled", "0 hold scheduled", "1 inbox expired", "1 push wanted",
                ])
            #expect(try await fixture.send("c", #""expires": "2026-01-10T13:00:00Z""#) == [])
            #expect(try await fixture.send("d", #""at": "2026-01-10T13:00:00Z""#) == ["1"])
        }
    }

    @Test func `many users are notified in steps, each once`() async throws {
        try await withFixture { (fixture: Fixture) async throws in
            let users = (0..<1200).map { "u\($0)" }
            #expect(try await fixture.send("a", users: users, #""lane": "bulk""#) == [])
            let bus = InMemoryBus(apps: [AppID(rawValue: "test")!])
            let worker = FanOutWorker(
                service: "rules", store: FanOutStore(decisions: DecisionStore(pool: fixture.pool, spread: .zero)),
                currentRules: CurrentRules(fixture.ruleSets), bus: bus,
                bulkThrottle: BulkThrottle(pauseFactor: 1), now: { fixture.clock.now }, logger: .init(label: "tests"))
            while try await worker.processNext() {}
            let pushed = try bus.messages(in: WorkQueue.registryNotifications(.bulk).name)
                .flatMap { try fixture.recipients(in: $0.body) }
            #expect(pushed.sorted() == users.sorted())
        }
    }
}

extension DirectDecisionTests.Fixture {
    /// Handles a direct notification, and returns the users whom it notifies at once.
    func send(_ id: String, users: [String] = ["1"], _ members: String = #""lane": "interactive""#) async throws
        -> [String]
    {
        let handler = EventHandler(
            currentRules: CurrentRules(ruleSets), store: DecisionStore(pool: pool, spread: .zero), now: { clock.now })
        let list = "[" + users.map { #""\#($0)""# }.joined(separator: ",") + "]"
        let inbound = delivered(
            cloudEvent(
                id: id, type: DirectNotification.eventType,
                data: #"{"users": \#(list), "content": {"body": "Hello"}, \#(members)}"#),
            routingKey: "test.\(DirectNotification.eventType)")
        let delivery = Delivery(inbound: inbound.at(clock.now), message: try handler.decode(inbound))
        let verdicts = try await handler.handle([delivery])
        return try verdicts.flatMap(\.outbound).flatMap { try recipients(in: $0.body) }
    }
}
