import AMQP
import Foundation
import Messaging
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import Rules

/// The deepest and longest accepted events can be stored, read and published.
@Suite(.timeLimit(.minutes(4))) struct EntranceLimitTests {
    static let queue = WorkQueue.registryNotifications(.interactive).name

    static func deep(_ levels: Int) -> String {
        String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
    }

    /// A delivery in CloudEvents binary mode: the body is the data.
    static func binary(_ data: String) -> Inbound {
        delivered(
            data, contentType: "application/json",
            headers: [
                "cloudEvents_specversion": "1.0", "cloudEvents_id": "e-1", "cloudEvents_source": "/up",
                "cloudEvents_type": "thing.happened",
            ])
    }

    static let rules = LargeAudienceTests.rules.replacing(
        "examples: [{ team: t, users: [1], name: Pat }, { team: t, users: [], name: Kim }]",
        with: "examples: [{ team: t, users: [1], name: Pat, k: [1] }, { team: t, users: [], name: Kim, k: [1] }]"
    ).replacing(#"say: { body: "{{name}}", "#, with: #"say: { body: "{{name}}", data: { k: "{{k}}" }, "#)

    @Test func `data deeper than the limit is refused on receipt, in both modes`() throws {
        let most = CloudEvents.maximumDataDepth
        func decode(_ inbound: Inbound) throws -> DomainEvent {
            try CloudEvents.decode(
                routingKey: inbound.routingKey, contentType: inbound.contentType, headers: inbound.headers,
                body: inbound.body)
        }
        for (levels, isTaken) in [(most - 1, true), (most, false)] {
            let data = #"{"k":\#(Self.deep(levels))}"#
            for inbound in [Self.binary(data), delivered(cloudEvent(data: data))] {
                if isTaken {
                    #expect(try decode(inbound).data.depth == most)
                } else {
                    #expect(throws: WireError.tooDeep(limit: most)) { try decode(inbound) }
                }
            }
        }
    }

    @Test(arguments: [1, 1100]) func `the deepest accepted data is published`(people: Int) async throws {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            let fixture = try LargeAudienceTests.FanOutFixture(pool)
            fixture.currentRules.put(RuleSets([try parse(Self.rules)]))
            let users = (0..<people).map { #""n-\#($0)""# }.joined(separator: ",")
            let handler = EventHandler(
                currentRules: fixture.currentRules, store: fixture.store.decisions, now: { fixture.clock.now })
            let inbound = Self.binary(
                #"{"team":"t","users":[\#(users)],"name":"Pat","k":\#(Self.deep(CloudEvents.maximumDataDepth - 1))}"#
            ).at(fixture.clock.now)
            let verdict = try await handler.handle([
                Delivery(inbound: inbound, message: try handler.decode(inbound))
            ])[0]
            #expect(verdict.disposition == .done)
            let steps = try await fixture.runSteps()
            #expect((people > LargeAudience.threshold) == (steps > 0))
            let bodies = verdict.outbound.map(\.body) + fixture.bus.messages(in: Self.queue).map(\.body)
            let received = try bodies.flatMap { try PushProtocol.Notification.decode(wireBody: $0).recipients }
            #expect(received.count == people)
        }
    }

    @Test func `numbers that grow when stored, and values stored twice, are read back`() async throws {
        let policy =
            #"{ digest: { after: 15m, keep: { a: "{{name}}", b: "{{name}}" }, say: { body: "{{count}}" } } }"#
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            let fixture = try GatheringTests.GatheringFixture(pool, GatheringTests.rules(policy, say: "{}"))
            let numbers = Array(repeating: "1e18", count: 45_000).joined(separator: ",")
            try await fixture.handleEvent(
                "thing.happened", #"{"users":[1],"name":[\#(numbers)],"room":1,"at":"2026-01-20T12:00:00Z"}"#)
            let size: Int = try await pool.query("SELECT octet_length(details::text) FROM rules.digest_item").single()
            #expect(size > WireCoding.maximumBodySize)
            try await fixture.thing("b", users: "[2]")
            fixture.clock.advance(.seconds(1000))
            #expect(try await fixture.runWorkers() == ["1: 1", "2: 1"])
        }
    }

    @Test func `content too large for a message gets its own reason and is kept in the inbox`() async throws {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            let fixture = try LargeAudienceTests.FanOutFixture(pool)
            fixture.currentRules.put(RuleSets([try parse(Self.rules)]))
            try await fixture.addMembers(20, team: "small")
            let handler = EventHandler(
                currentRules: fixture.currentRules, store: fixture.store.decisions, now: { fixture.clock.now })
            // Each number takes four bytes in the event and nineteen in the notification.
            let numbers = Array(repeating: "1e18", count: 20_000).joined(separator: ",")
            let inbound = delivered(
                cloudEvent(data: #"{"team":"small","users":[],"name":"Pat","k":[\#(numbers)]}"#)
            ).at(fixture.clock.now)
            let verdict = try await handler.handle([
                Delivery(inbound: inbound, message: try handler.decode(inbound))
            ])[0]
            #expect(verdict.disposition == .done && verdict.outbound.isEmpty)
            #expect(
                try await RulesDatabase.count(
                    "rules.decision WHERE answer = 'inbox' AND reason = 'unsendable'", pool) == 20)
            #expect(try await RulesDatabase.count("rules.inbox", pool) == 20)
        }
    }

    @Test func `a message deeper than the next stage accepts fails when encoded`() throws {
        func notification(_ levels: Int) throws -> PushProtocol.Notification {
            PushProtocol.Notification(
                trace: Trace(id: UUID(), correlation: "c", causation: "c"), app: AppID(rawValue: "test")!, rule: "r",
                lane: .interactive, content: Content(data: ["k": try nested(levels)]),
                recipients: [.init(user: user("1"), notification: UUID())])
        }
        func nested(_ levels: Int) throws -> JSONValue {
            (0..<levels).reduce(JSONValue.int(1)) { inner, _ in .array([inner]) }
        }
        // The notification, its content and its data add three levels.
        let taken = try Outbound(notification(WireCoding.maximumDepth - 3), to: .notifications, routingKey: "x")
        _ = try PushProtocol.Notification.decode(wireBody: taken.body)
        #expect(throws: WireError.tooDeep(limit: WireCoding.maximumDepth)) {
            try Outbound(notification(WireCoding.maximumDepth - 2), to: .notifications, routingKey: "x")
        }
    }

    @Test func `long user ids make more messages, and none too large`() throws {
        let rendered = RenderedNotification(
            id: UUID(), app: AppID(rawValue: "test")!, rule: "r", lane: .bulk, content: Content(body: "b"), mutes: [],
            correlation: "c")
        let recipients = (0..<1000).map { index in
            let name = String(repeating: "\"", count: 250) + "\(index)"
            return PushProtocol.Notification.Recipient(user: user(name), notification: UUID(), badge: 99_999)
        }
        let notifications = rendered.notifications(to: recipients, quietly: false) { _, _ in UUID() }
        #expect(notifications.flatMap(\.recipients) == recipients)
        for notification in notifications {
            _ = try Outbound(notification, to: .notifications, routingKey: "x")
        }
        #expect(rendered.isSendable)
    }
}
