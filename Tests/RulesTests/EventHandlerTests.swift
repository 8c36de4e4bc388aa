import Foundation
import Logging
import Messaging
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RuleLanguage
@testable import Rules

/// The event handler on a real database.
@Suite(.timeLimit(.minutes(2))) struct EventHandlerTests {
    func handler(_ pool: PostgresPool, rules: String = ruleFile(say: #"body: "{{name}}""#)) throws -> EventHandler {
        EventHandler(currentRules: CurrentRules(RuleSets([try parse(rules)])), store: DecisionStore(pool: pool))
    }

    func handle(_ handler: EventHandler, _ inbounds: Inbound...) async throws -> [Verdict] {
        try await handler.handle(inbounds.map { Delivery(inbound: $0, message: try handler.decode($0)) })
    }

    @Test func `an event becomes notifications, and its decisions are stored`() async throws {
        try await RulesDatabase.withPool { pool in
            let verdicts = try await handle(try handler(pool), delivered(cloudEvent()))
            #expect(verdicts.map(\.disposition) == [.done])
            let outbound = try #require(verdicts.first?.outbound.first)
            #expect(outbound.exchange == .notifications)
            #expect(outbound.routingKey == "interactive.test")
            #expect(outbound.correlationID == "e-1")
            #expect(outbound.arrivedAt == Timestamp(milliseconds: 1000))
            let notification = try Notification.decode(wireBody: outbound.body)
            #expect(notification.recipients.map(\.user.rawValue) == ["1", "2"])
            #expect(notification.content == Content(body: "Pat"))
            #expect(try await RulesDatabase.counts(pool) == [1, 2, 0])
            let row = try #require(try await pool.query("SELECT * FROM rules.event").first)
            #expect(try row.decode(String.self, at: "source") == "/up")
            #expect(try row.decode(Date.self, at: "arrived_at") == Date(timeIntervalSince1970: 1))
            let users: [String] = try await pool.query(
                "SELECT array_agg(user_id || '/' || rule) FROM rules.decision"
            ).single()
            #expect(users.sorted() == ["1/only", "2/only"])
        }
    }

    @Test(arguments: [false, true])
    func `a repeated event without an outcome is published again and stored once`(redelivered: Bool)
        async throws
    {
        try await RulesDatabase.withPool { pool in
            let handler = try handler(pool)
            let first = try await handle(handler, delivered(cloudEvent()))
            let again = try await handle(handler, delivered(cloudEvent(), redelivered: redelivered))
            #expect(again.map(\.disposition) == [.done])
            #expect(again.map(\.outbound) == first.map(\.outbound))
            #expect(try await RulesDatabase.counts(pool) == [1, 2, 0])
        }
    }

    @Test func `a repeated event with outcomes for all notifications is skipped`() async throws {
        try await RulesDatabase.withPool { pool in
            let handler = try handler(pool)
            let first = try await handle(handler, delivered(cloudEvent()))
            try await OutcomeStore(pool: pool).keep(try answers(to: first[0].outbound))
            let again = try await handle(handler, delivered(cloudEvent()), delivered(cloudEvent(id: "e-2")))
            #expect(again[0].disposition.label == "discard")
            #expect(again[0].outbound == [])
            #expect(again[1].disposition == .done)
            #expect(again[1].outbound.count == 1)
            #expect(try await RulesDatabase.counts(pool) == [2, 4, 2])
        }
    }

    @Test func `a repeated event with one of two outcomes is not skipped`() async throws {
        try await RulesDatabase.withPool { pool in
            let handler = try handler(pool)
            let first = try await handle(handler, delivered(cloudEvent()))
            var answers = try answers(to: first[0].outbound)
            answers[0].outcomes.removeLast()
            try await OutcomeStore(pool: pool).keep(answers)
            let again = try await handle(handler, delivered(cloudEvent()))
            #expect(again.map(\.outbound) == first.map(\.outbound))
        }
    }

    @Test func `two copies in one batch are published once`() async throws {
        try await RulesDatabase.withPool { pool in
            let verdicts = try await handle(try handler(pool), delivered(cloudEvent()), delivered(cloudEvent()))
            #expect(verdicts.map(\.outbound.count) == [1, 0])
            #expect(verdicts.map(\.disposition.label) == ["done", "discard"])
        }
    }

    @Test func `concurrent batches with the same events store each event once`() async throws {
        try await RulesDatabase.withPool { pool in
            let handler = try handler(pool)
            let events = (0..<50).map { delivered(cloudEvent(id: "e-\($0)")) }
            try await withThrowingTaskGroup(of: [Verdict].self) { group in
                for shift in 0..<4 {
                    let batch = try (events[(shift * 12)...] + events[..<(shift * 12)]).map {
                        Delivery(inbound: $0, message: try handler.decode($0))
                    }
                    group.addTask { try await handler.handle(batch) }
                }
                for try await verdicts in group { #expect(verdicts.allSatisfy { $0.outbound.count == 1 }) }
            }
            #expect(try await RulesDatabase.counts(pool) == [50, 100, 0])
        }
    }

    @Test func `events without recipients are stored, and events without rules are discarded`() async throws {
        try await RulesDatabase.withPool { pool in
            let verdicts = try await handle(
                try handler(pool), delivered(cloudEvent(data: #"{"name":"x","users":[]}"#)),
                delivered(cloudEvent(type: "thing.else")), delivered(cloudEvent(), routingKey: "other.thing.happened"),
                delivered(cloudEvent(extra: #","expirytime":"2020-01-01T00:00:00Z""#)),
                delivered(cloudEvent(id: "e-3", data: #"{"users":[1]}"#)))
            let codes = verdicts.map { verdict -> String in
                switch verdict.disposition {
                case .done: "done"
                case .retry(_, let reason), .postpone(_, let reason), .deadLetter(let reason), .discard(let reason):
                    "\(verdict.disposition.label) \(reason.code)"
                }
            }
            #expect(
                codes == [
                    "done", "discard unknown-type", "dead-letter unknown-app", "discard expired",
                    "dead-letter missing-field",
                ])
            #expect(
                verdicts[4].disposition
                    == .deadLetter(
                        Reason(
                            code: "missing-field", detail: "rule only, say.body: name is missing from the event")))
            #expect(verdicts.flatMap(\.outbound) == [])
            #expect(try await RulesDatabase.counts(pool) == [1, 0, 0])
        }
    }

    @Test func `an event that expires after its decision is published again, and a new one is discarded`() async throws
    {
        try await RulesDatabase.withPool { pool in
            let expiry = Timestamp(milliseconds: 1_767_225_600_000)
            func event(_ id: String) -> String { cloudEvent(id: id, extra: #","expirytime":"2026-01-01T00:00:00Z""#) }
            func handler(at now: Timestamp) throws -> EventHandler {
                EventHandler(
                    currentRules: CurrentRules(RuleSets([try parse(ruleFile(say: #"body: "{{name}}""#))])),
                    store: DecisionStore(pool: pool), now: { now })
            }
            let first = try await handle(try handler(at: expiry - .seconds(1)), delivered(event("e-1")))
            let later = try await handle(
                try handler(at: expiry + .seconds(1)), delivered(event("e-1")), delivered(event("e-2")))
            #expect(first[0].outbound.count == 1 && later[0].outbound == first[0].outbound)
            #expect(later[0].disposition == .done)
            #expect(later[1].outbound.isEmpty && later[1].disposition.label == "discard")
            #expect(try await RulesDatabase.counts(pool) == [1, 2, 0])
        }
    }

    @Test func `an event that failed to render is handled again once its rule is fixed`() async throws {
        try await RulesDatabase.withPool { pool in
            let event = delivered(cloudEvent(data: #"{"users":[1]}"#))
            #expect(try await handle(try handler(pool), event)[0].disposition.label == "dead-letter")
            let mended = try handler(pool, rules: ruleFile(say: "body: Hello"))
            #expect(try await handle(mended, event)[0].outbound.count == 1)
        }
    }

    @Test(arguments: ["{{name}}", "'; DROP TABLE rules.event; --", "$1", "%s {0}", "a'b", "\u{1F980}", "{1,2}"])
    func `no character of a text is interpreted by the database or a template`(text: String) async throws {
        let quoted = String(decoding: try WireCoding.encode(JSONValue.string(text)), as: UTF8.self)
        try await RulesDatabase.withPool { pool in
            let handler = try handler(pool)
            let body =
                #"{"specversion":"1.0","id":\#(quoted),"source":\#(quoted),"type":"thing.happened","subject":\#(quoted),"data":{"name":\#(quoted),"users":[\#(quoted)]}}"#
            let verdict = try await handle(handler, delivered(body))[0]
            let notification = try Notification.decode(wireBody: try #require(verdict.outbound.first).body)
            #expect(notification.content.body == text)
            #expect(notification.recipients.map(\.user.rawValue) == [text])
            let row = try #require(
                try await pool.query("SELECT id, source, user_id FROM rules.event JOIN rules.decision ON event = key")
                    .first)
            for column in ["id", "source", "user_id"] { #expect(try row.decode(String.self, at: column) == text) }
        }
    }

    @Test func `a notification too large for the next stage is dead-lettered`() async throws {
        try await RulesDatabase.withPool { pool in
            let long = String(repeating: "x", count: 200_000)
            let rules = ruleFile(say: #"{ body: B, data: { a: "{{name}}", b: "{{name}}" } }"#)
            let verdict = try await handle(
                try handler(pool, rules: rules), delivered(cloudEvent(data: #"{"name":"\#(long)","users":[1]}"#)))[0]
            #expect(verdict.disposition.label == "dead-letter")
            #expect(try await RulesDatabase.counts(pool) == [0, 0, 0])
        }
    }

    @Test func `binary mode is read, and an invalid event is dead-lettered`() async throws {
        let pool = PostgresPool(
            configuration: try PostgresConfiguration(
                url: "postgresql://nobody@localhost/none", applicationName: "tests"),
            logger: Logger(label: "tests"))
        let handler = try handler(pool)
        let binary = delivered(
            #"{"name":"Pat"}"#, contentType: "application/json",
            headers: [
                "cloudEvents_specversion": "1.0", "cloudEvents_id": "b", "cloudEvents_source": "/up",
                "cloudEvents:type": "thing.happened",
            ])
        #expect(try handler.decode(binary).data == ["name": "Pat"])
        for body in ["", "[]", "not json", cloudEvent().replacing("1.0", with: "0.3"), #"{"specversion":"1.0"}"#] {
            #expect(throws: WireError.self) { try handler.decode(delivered(body)) }
        }
    }

    @Test func `an unreachable database is an outage and does not count against messages`() async throws {
        let configuration = try PostgresConfiguration(
            url: "postgresql://nobody@127.0.0.1:1/none", checkoutTimeout: .milliseconds(100), applicationName: "tests")
        try await TestDatabase.withPool(configuration) { pool in
            let handler = try handler(pool)
            await #expect(throws: Outage.self) { try await handle(handler, delivered(cloudEvent())) }
        }
    }

    @Test func `a database without the tables is an outage`() async throws {
        try await TestDatabase.withPool { pool in
            let handler = try handler(pool)
            let outage = await #expect(throws: Outage.self) { try await handle(handler, delivered(cloudEvent())) }
            #expect(outage?.dependency == "the service's tables (run `pushctl migrate`)")
        }
    }
}
