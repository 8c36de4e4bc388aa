import AMQP
import Contracts
import Foundation
import HTTPTypes
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RuleLanguage
@testable import Rules

/// Heartbeats and receipts.
@Suite(.timeLimit(.minutes(3))) struct PresenceRoutesTests {
    @Test func `a user viewing the thread gets no push for it until the lease expires`()
        async throws
    {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let answer = try await http.send(.put, "/v1/presence/phone", ["viewing": "1", "for": 60])
            #expect(answer.status == 200 && answer.body == ["expires_at": "2026-01-10T12:01:00.000Z"])
            #expect(try await http.fixture.handleEvent("a") == [[]])
            #expect(try await http.fixture.handleEvent("b", room: 2) == [["1"]])
            http.clock.advance(.seconds(59))
            // The user views another thread now.
            #expect(try await http.send(.put, "/v1/presence/phone", [:]).status == 200)
            #expect(try await http.fixture.handleEvent("c") == [["1"]])
            #expect(try await http.send(.put, "/v1/presence/tablet%20", ["viewing": "1"]).status == 400)
            #expect(try await http.send(.put, "/v1/presence/tablet", ["viewing": "1"]).status == 200)
            #expect(try await http.fixture.handleEvent("d") == [[]])
            #expect(try await http.send(.delete, "/v1/presence/tablet", user: "2").status == 204)
            #expect(try await http.fixture.handleEvent("e") == [[]])
            for _ in 0..<2 { #expect(try await http.send(.delete, "/v1/presence/tablet").status == 204) }
            #expect(try await http.fixture.handleEvent("f") == [["1"]])
            #expect(try await http.send(.put, "/v1/presence/phone", ["viewing": "1"]).status == 200)
            http.clock.advance(Signal.defaultLease)
            #expect(try await http.fixture.handleEvent("g") == [["1"]])
        }
    }

    @Test func `devices with presence are limited, and expired ones free their place`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            for device in 0..<PresenceStore.mostDevices {
                #expect(try await http.send(.put, "/v1/presence/d\(device)", ["for": 600]).status == 200)
            }
            #expect(try await http.send(.put, "/v1/presence/more", [:]).status == 422)
            #expect(try await http.send(.put, "/v1/presence/d0", [:]).status == 200)
            #expect(try await http.send(.put, "/v1/presence/more", [:], user: "2").status == 200)
            http.clock.advance(.seconds(600))
            #expect(try await http.send(.put, "/v1/presence/more", [:]).status == 200)
            let kept = try await RulesDatabase.count("rules.presence WHERE user_id = '1'", http.pool)
            #expect(kept == 1)
        }
    }

    @Test func `an invalid heartbeat is refused`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let wrong: [JSONValue] = [
                ["for": 0], ["for": 601], ["for": 1.5], ["viewing": 1], ["viewing": ""], ["until": 5], [],
            ]
            for body in wrong {
                #expect(try await http.send(.put, "/v1/presence/phone", body).status == 400, "\(body)")
            }
            #expect(try await RulesDatabase.count("rules.presence", http.pool) == 0)
        }
    }

    @Test func `receipts are stored once, for the user's own notifications, and opening marks as read`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            _ = try await http.fixture.handleEvent("a", users: "[1,2]")
            _ = try await http.fixture.handleEvent("b", users: "[1]")
            let mine = try await http.inbox()
            let others = try await http.inbox(user: "2")
            func give(_ receipts: [(String, String)], user: String = "1") async throws -> Int {
                let list = receipts.map { id, what -> JSONValue in ["id": .string(id), "what": .string(what)] }
                return try await http.send(.post, "/v1/receipts", ["receipts": .array(list)], user: user).status
            }
            for _ in 0..<2 {
                #expect(
                    try await give([
                        (mine[0], "opened"), (mine[0], "opened"), (mine[1], "dismissed"), (others[0], "opened"),
                        (UUID().uuidString, "opened"),
                    ]) == 204)
            }
            let kept = try await http.pool.query("SELECT notification, what FROM rules.receipt ORDER BY what")
            #expect(
                try kept.map { try $0.decode(UUID.self, at: 0).uuidString.lowercased() } == [mine[1], mine[0]])
            #expect(try kept.map { try $0.decode(String.self, at: 1) } == ["dismissed", "opened"])
            #expect(try await http.inbox("?unread=true") == [mine[1]])
            #expect(try await http.unread(user: "2") == 1)
            // Also without the item in the inbox.
            #expect(try await http.send(.delete, "/v1/inbox/\(mine[1])").status == 204)
            #expect(try await give([(mine[1], "opened")]) == 204)
            #expect(try await RulesDatabase.count("rules.receipt", http.pool) == 3)
            let wrong: [JSONValue] = [
                [:], ["receipts": []], ["receipts": [["id": "x", "what": "opened"]]],
                ["receipts": [["id": .string(mine[0]), "what": "seen"]]], ["receipts": [["id": .string(mine[0])]]],
            ]
            for body in wrong {
                #expect(try await http.send(.post, "/v1/receipts", body).status == 400, "\(body)")
            }
        }
    }

    @Test func `receipts are reported to an upstream that asks for them, and 503 says that they are not`() async throws
    {
        let consumers = ReportConsumers(upstreams: [RulesHTTP.app])
        let bus = InMemoryBus(topology: Topology(apps: [RulesHTTP.app], reports: consumers))
        let queue = UpstreamQueue.name(of: RulesHTTP.app)
        let reporter = ReceiptReporter(service: "rules", bus: bus, isReported: { $0 == RulesHTTP.app })
        try await RulesHTTP.with(reporter: reporter) { (http: RulesHTTP) async throws in
            _ = try await http.fixture.handleEvent("a", users: "[1,2]")
            let mine = try await http.inbox()[0]
            let other = try await http.inbox(user: "2")[0]
            // The other user's receipt is stored; the caller must not report it as an own one.
            #expect(try await http.send(.post, "/v1/receipts", receipts([other]), user: "2").status == 204)
            #expect(bus.messages(in: queue).count == 1)
            #expect(
                try await http.send(.post, "/v1/receipts", receipts([mine, other, UUID().uuidString])).status == 204)
            let messages = bus.messages(in: queue)
            #expect(messages.count == 2)
            let report = try WireCoding.decode(JSONValue.self, from: try #require(messages.last).body)
            let contract = try #require(MessageContract.all.first { $0.name == "receipt-report" })
            #expect(SchemaValidator(contract.schema, isClosed: true).problems(of: report) == [])
            #expect(
                report["data"] == [
                    "notification_id": .string(mine), "user_id": "1", "receipt": "opened",
                    "at": "2026-01-10T12:00:00.000Z", "event_id": "a", "rule": "only",
                ])
            #expect(messages.last?.routingKey == "event.receipt.test")
            // Repeated under the same id.
            #expect(try await http.send(.post, "/v1/receipts", receipts([mine])).status == 204)
            #expect(bus.messages(in: queue).last?.properties.messageID == messages.last?.properties.messageID)
            bus.answer(publishesTo: .notifications, with: [.nacked])
            #expect(try await http.send(.post, "/v1/receipts", receipts([mine])).status == 503)
        }
    }

    private func receipts(_ ids: [String]) -> JSONValue {
        ["receipts": .array(ids.map { ["id": .string($0), "what": "opened"] })]
    }
}
