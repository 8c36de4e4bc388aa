import AMQP
import DecisionLog
import Foundation
import HTTPTypes
import Messaging
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// Clear commands for copies of revoked notifications that phones show, on a real database.
@Suite(.timeLimit(.minutes(5))) struct ShownCopyTests {
    private let bus = InMemoryBus(apps: [RulesHTTP.app])

    private func clearer(_ http: RulesHTTP) -> ShownCopyClearer {
        ShownCopyClearer(
            service: "rules", store: ClearCommandStore(pool: http.pool, logger: .silent), bus: bus,
            now: { http.clock.now }, logger: .silent)
    }

    /// Revokes an event with its inbox items.
    private func revoke(_ http: RulesHTTP, _ event: String, user: String? = nil) async throws {
        let request = RevocationRequest(
            app: RulesHTTP.app, target: .event(event), user: user.flatMap(UserID.init(rawValue:)))
        _ = try await RevocationLog(http.pool).record(request, by: .commandLine)
        try await NotificationRevoker(
            service: "rules", store: RevocationStore(pool: http.pool, logger: .silent),
            currentRules: CurrentRules(RuleSets([])), bus: bus, now: { http.clock.now }, logger: .silent
        ).revokeDue()
    }

    /// Decides about events to users, and returns the notifications by `event user`.
    private func publish(
        _ http: RulesHTTP, _ ids: [String], users: String = "[1]"
    ) async throws -> [String: UUID] {
        for id in ids { _ = try await http.fixture.handleEvent(id, users: users) }
        try await http.pool.execute("UPDATE rules.decision SET decided_at = clock_timestamp()")
        var notifications: [String: UUID] = [:]
        for row in try await http.pool.query(
            """
            SELECT event.id || ' ' || user_id, notification FROM rules.decision
            JOIN rules.event ON event.key = decision.event
            """)
        {
            notifications[try row.decode(at: 0)] = try row.decode(at: 1)
        }
        return notifications
    }

    private func answer(
        _ http: RulesHTTP, _ notification: UUID?, _ answer: Outcome.Answer = .accepted(id: nil), device: UUID = UUID()
    ) async throws {
        let outcome = Outcome(
            notification: try #require(notification), device: device, answer: answer, at: http.clock.now,
            registeredAt: nil)
        let message = Outcomes(
            trace: Trace(id: UUID(), correlation: "e", causation: "p"), app: RulesHTTP.app, origin: .apns,
            environment: .production, lane: .interactive, outcomes: [outcome])
        try await OutcomeStore(pool: http.pool).keep([message], now: http.clock.now)
    }

    /// The identifiers of each command after `seconds`, by user.
    private func commands(_ http: RulesHTTP, after seconds: Int = 1) async throws -> [String: [String]] {
        let queue = WorkQueue.registryNotifications(.interactive).name
        let before = bus.messages(in: queue).count
        http.clock.advance(.seconds(seconds))
        try await clearer(http).clearDue()
        var commands: [String: [String]] = [:]
        for message in bus.messages(in: queue).dropFirst(before) {
            let notification = try Notification.decode(wireBody: message.body)
            #expect(notification.rule == "!clear" && notification.content.silent)
            let user = try #require(notification.recipients.first?.user.rawValue)
            #expect(commands[user] == nil)
            commands[user] = (notification.content.data?["heliograph_clear"]?.array ?? []).compactMap(\.string)
        }
        return commands
    }

    private func text(_ id: UUID?) -> String { id?.uuidString.lowercased() ?? "-" }

    @Test func `given shown copies of several events, then each user gets one command`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let all = try await publish(http, ["a", "b"], users: "[1,2]")
            for (name, notification) in all where name != "b 2" { try await answer(http, notification) }
            try await answer(http, all["b 2"], .skipped(reason: "no-device"))
            try await revoke(http, "a")
            try await revoke(http, "b")
            #expect(try await commands(http, after: 0) == [:])
            let sent = try await commands(http)
            #expect(
                sent.mapValues(Set.init) == [
                    "1": [text(all["a 1"]), text(all["b 1"])], "2": [text(all["a 2"])],
                ])
            #expect(try await commands(http) == [:])
            // A repeated revocation, and one of the notification itself, clear nothing again.
            try await revoke(http, "a")
            try await revoke(http, "a", user: "1")
            #expect(try await commands(http, after: 60) == [:])
            let log = RevocationLog(http.pool)
            guard
                case .recorded(let revocation, false) = try await log.record(
                    RevocationRequest(app: RulesHTTP.app, target: .event("b")), by: .commandLine)
            else {
                Issue.record("the revocation is unknown")
                return
            }
            #expect(revocation.effect == Revocation.Effect(pushes: 1, shown: 1, inboxItems: 2))
        }
    }

    @Test func `given a push that a provider accepts after its revocation, then it is cleared`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let all = try await publish(http, ["a", "b"])
            try await revoke(http, "a")
            #expect(try await commands(http) == [:])
            try await answer(http, all["a 1"], .skipped(reason: "revoked"))
            #expect(try await commands(http) == [:])
            // Another device had it before the revocation; a notification that is not revoked stays.
            try await answer(http, all["a 1"])
            try await answer(http, all["b 1"])
            #expect(try await commands(http) == ["1": [text(all["a 1"])]])
            // A third device gets it after the command.
            try await answer(http, all["a 1"], .unknown(reason: "connection-lost"))
            #expect(try await commands(http) == ["1": [text(all["a 1"])]])
        }
    }

    @Test func `given more bursts than the budget, then later copies wait and go together`() async throws {
        try await RulesHTTP.with(DecisionStoreTests.rules.replacing("caps: hourly, ", with: "")) {
            (http: RulesHTTP) async throws in
            let ids = ["a", "b", "c", "d", "e"]
            let all = try await publish(http, ids)
            for id in ids { try await answer(http, all["\(id) 1"]) }
            for (index, id) in ids.prefix(3).enumerated() {
                try await revoke(http, id)
                let sent = try await commands(http)["1"] ?? []
                // Earlier identifiers are repeated, for devices that were offline.
                #expect(sent.count == index + 1 && sent.first == text(all["\(id) 1"]))
            }
            for id in ids.suffix(2) {
                try await revoke(http, id)
                #expect(try await commands(http, after: 60) == [:])
            }
            let explained = try await ExplanationStore(http.pool).explain(.init(event: "d"))
            let lines = try await RevocationLog(http.pool).adding(to: explained)[0].clearLines
            #expect(lines.count == 1 && lines[0].contains("shown on phones; the clear command waits since"))
            let sent = try await commands(http, after: 3600)["1"] ?? []
            #expect(Set(sent.prefix(2)) == [text(all["d 1"]), text(all["e 1"])] && sent.count == 5)
        }
    }

    @Test func `given a command, then its outcomes are in the explanation`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let all = try await publish(http, ["a"])
            try await answer(http, all["a 1"])
            try await revoke(http, "a")
            #expect(try await commands(http).count == 1)
            let command = try await http.pool.query("SELECT command FROM rules.shown_copy").single(UUID.self)
            try await answer(http, command)
            try await answer(http, command, .unregistered(since: nil, reason: "Unregistered"))
            // An outcome of an unknown notification is ignored.
            try await answer(http, UUID())
            #expect(try await RulesDatabase.count("rules.outcome", http.pool) == 3)
            let explained = try await http.send(
                .get, "/v1/operator/events/a?app=test", user: http.key(2, for: [.readEvents]))
            let clear = try #require(explained.body["events"]?.array?.first?["clears"]?.array?.first)
            #expect(clear["command"] == .string(text(command)) && clear["user"] == "1")
            #expect(clear["outcomes"]?.array?.count == 2)
        }
    }

    @Test func `given a collapse key that a later notification has, then its copy stays`() async throws {
        let rules = DecisionStoreTests.rules.replacing("how: {", with: #"how: { collapse-key: "room-{{room}}","#)
        try await RulesHTTP.with(rules) { (http: RulesHTTP) async throws in
            _ = try await http.fixture.handleEvent("a", room: 1)
            let all = try await publish(http, ["x"])
            // The decisions are dated by the database's clock, so the inbox item is too.
            try await http.pool.execute(
                "UPDATE rules.inbox SET at = clock_timestamp() WHERE notification = \(all["x 1"])")
            try await answer(http, all["a 1"])
            try await revoke(http, "a")
            // The phone shows “x” under the same key.
            #expect(try await commands(http) == [:])
            try await answer(http, all["x 1"])
            try await revoke(http, "x")
            #expect(try await commands(http).mapValues(Set.init) == ["1": ["room-1"]])
        }
    }

    @Test func `given a broker without confirmation, then the command is repeated and takes one place`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let all = try await publish(http, ["a"])
            try await answer(http, all["a 1"])
            try await revoke(http, "a")
            bus.answer(publishesTo: .notifications, with: [.nacked])
            #expect(try await commands(http) == [:])
            #expect(try await commands(http) == ["1": [text(all["a 1"])]])
            let places = try await http.pool.query("SELECT cardinality(sent_at) FROM rules.clear_command")
            #expect(try places.single(Int.self) == 1)
        }
    }

    @Test func `given clear-read, then a notification read or dismissed on one device is cleared on the others`()
        async throws
    {
        let rules = DecisionStoreTests.rules.replacing("caps: hourly, ", with: "") + "\nclear-read: true\n"
        try await RulesHTTP.with(rules) { (http: RulesHTTP) async throws in
            let all = try await publish(http, ["read", "opened", "dismissed", "alone", "unread"])
            for (name, notification) in all {
                for _ in 0..<(name == "alone 1" ? 1 : 2) { try await answer(http, notification) }
            }
            func id(_ event: String) -> JSONValue { .string(text(all["\(event) 1"])) }
            let reading: JSONValue = ["ids": [id("read"), id("alone")]]
            #expect(try await http.send(.post, "/v1/inbox/read", reading).status == 200)
            let receipts: JSONValue = [
                "receipts": [["id": id("opened"), "what": "opened"], ["id": id("dismissed"), "what": "dismissed"]]
            ]
            #expect(try await http.send(.post, "/v1/receipts", receipts).status == 204)
            let sent = try await commands(http)["1"] ?? []
            #expect(Set(sent) == Set(["read", "opened", "dismissed"].map { text(all["\($0) 1"]) }))
            // Read notifications are cleared once, also if they are revoked.
            #expect(try await http.send(.post, "/v1/inbox/read", reading).status == 200)
            try await revoke(http, "read")
            #expect(try await commands(http) == [:])
        }
    }

    @Test func `given no clear-read, then a read notification stays on other devices`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let all = try await publish(http, ["a"])
            for _ in 0..<2 { try await answer(http, all["a 1"]) }
            #expect(try await http.send(.post, "/v1/inbox/read", ["all": true]).status == 200)
            #expect(try await commands(http) == [:])
        }
    }
}
