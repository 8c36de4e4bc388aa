import AMQP
import Foundation
import HTTPTypes
import Messaging
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RuleDryRun
@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// `done` by a receipt: a user who opened a notification gets no reminder about its item.
@Suite(.timeLimit(.minutes(4))) struct DoneByReceiptTests {
    /// One event notifies at once, reminds later and adds to a digest, about one item.
    static func rules(_ done: String = "{ receipt: opened, rules: now }") -> String {
        """
        app: test
        events:
          thing.happened: { examples: [{ name: Pat, users: [1], at: "2026-01-20T12:00:00Z" }] }
        done:
          - \(done)
        rules:
          now:
            when: { event: thing.happened }
            to: { users: users }
            say: { body: "{{name}}" }
            policy: { item: "{{name}}" }
          reminder:
            when: { event: thing.happened }
            to: { users: users }
            say: { body: "Remember {{name}}" }
            policy: { item: "{{name}}", schedule: { at: at } }
          summary:
            when: { event: thing.happened }
            to: { users: users }
            policy: { item: "{{name}}", digest: { after: 1h, say: { body: "{{count}}" } } }
        """
    }

    private static func problems(_ done: String) -> [String] {
        do {
            _ = try RuleFile.parse(rules(done), file: "test.yaml")
            return []
        } catch {
            return error.problems.map { "\($0.key): \($0.problem)" }
        }
    }

    @Test func `mistakes name the key`() {
        #expect(Self.problems("{ receipt: [opened, dismissed] }") == [])
        #expect(
            Self.problems("{ receipt: seen }") == ["done.0.receipt: “seen” is not one of opened, dismissed"])
        #expect(
            Self.problems("{ receipt: opened, rules: nwo }")
                == ["done.0.rules: there is no rule “nwo”; did you mean “now”?"])
        #expect(
            Self.problems("{ receipt: opened, rules: summary }")
                == ["done.0.rules: “summary” sends digests; a receipt of a digest is not about one item"])
        #expect(
            Self.problems("{ receipt: opened, item: x }").first
                == "done.0.item: unknown key; the keys here are receipt, rules")
        let withoutItem = Self.rules("{ receipt: opened }").replacing(#"item: "{{name}}","#, with: "")
            .replacing(#"policy: { item: "{{name}}" }"#, with: "policy: { report: true }")
        #expect(throws: RuleFileError.self) { try RuleFile.parse(withoutItem, file: "test.yaml") }
    }

    private static func send(_ http: RulesHTTP, _ id: String, users: String = "[1,2]", time: String) async throws {
        let handler = EventHandler(
            currentRules: CurrentRules(http.fixture.ruleSets), store: DecisionStore(pool: http.pool),
            now: { http.clock.now })
        let inbound = delivered(
            cloudEvent(
                id: id, data: #"{"name":"Pat","users":\#(users),"at":"2026-01-20T12:00:00Z"}"#,
                extra: #","time":"\#(time)""#)
        ).at(http.clock.now)
        _ = try await handler.handle([Delivery(inbound: inbound, message: try handler.decode(inbound))])
    }

    private static func log(_ http: RulesHTTP, _ user: String) async throws -> [String] {
        try await http.pool.query(
            """
            SELECT rule || ' ' || answer || ' ' || reason FROM rules.decision WHERE user_id = \(user)
            ORDER BY rule, decided_at, step, notification
            """
        ).map { try $0.decode(String.self, at: 0) }
    }

    private static func give(_ http: RulesHTTP, _ id: String, _ what: String) async throws -> Int {
        try await http.send(.post, "/v1/receipts", ["receipts": [["id": .string(id), "what": .string(what)]]]).status
    }

    @Test func `given an opened notification, then its item's reminder and digest entry go, for this user only`()
        async throws
    {
        try await RulesHTTP.with(Self.rules()) { http in
            try await Self.send(http, "a", time: "2026-01-10T11:59:00Z")
            let mine = try await http.inbox()[0]
            // A dismissed notification does not complete the item here.
            #expect(try await Self.give(http, mine, "dismissed") == 204)
            #expect(try await RulesDatabase.count("rules.held", http.pool) == 2)
            for _ in 0..<2 { #expect(try await Self.give(http, mine, "opened") == 204) }
            let pending = ["now push wanted", "reminder hold scheduled", "summary digest gathered"]
            #expect(
                try await Self.log(http, "1") == [
                    pending[0], pending[1], "reminder drop done", pending[2], "summary drop done",
                ])
            #expect(try await Self.log(http, "2") == pending)
            #expect(try await RulesDatabase.count("rules.held", http.pool) == 1)
            #expect(try await RulesDatabase.count("rules.digest_item", http.pool) == 1)
        }
    }

    @Test func `given an opened notification, then earlier events are dropped for this user, and later ones are not`()
        async throws
    {
        try await RulesHTTP.with(Self.rules("{ receipt: [opened, dismissed] }")) { http in
            try await Self.send(http, "a", users: "[1]", time: "2026-01-10T11:59:00Z")
            #expect(try await Self.give(http, try await http.inbox()[0], "dismissed") == 204)
            try await Self.send(http, "b", time: "2026-01-10T11:58:00Z")
            #expect(try await Self.log(http, "1").suffix(3).contains("summary drop done"))
            #expect(try await Self.log(http, "1").filter { $0 == "now drop done" }.count == 1)
            #expect(try await Self.log(http, "2").contains("now push wanted"))
            try await Self.send(http, "c", users: "[1]", time: "2026-01-10T12:30:00Z")
            #expect(try await Self.log(http, "1").filter { $0 == "now push wanted" }.count == 2)
        }
    }

    @Test func `given another user's receipt, then nothing is withdrawn`() async throws {
        try await RulesHTTP.with(Self.rules()) { http in
            try await Self.send(http, "a", time: "2026-01-10T11:59:00Z")
            let others = try await http.inbox(user: "2")[0]
            #expect(try await Self.give(http, others, "opened") == 204)
            #expect(try await RulesDatabase.count("rules.held", http.pool) == 2)
            #expect(try await RulesDatabase.count("rules.done_by", http.pool) == 0)
        }
    }

    @Test func `a preview withdraws what the service withdraws`() throws {
        let ruleSets = RuleSets([try parse(Self.rules())])
        let lines = """
            {"id":"a","source":"/up","type":"thing.happened","specversion":"1.0","time":"2026-01-10T12:00:00Z","data":{"name":"Pat","users":["1","2"],"at":"2026-01-20T12:00:00Z"}}
            {"at":"2026-01-10T12:05:00Z","receipt":{"user":"1","rule":"now","what":"opened"}}
            {"at":"2026-01-10T12:06:00Z","receipt":{"user":"3","rule":"now","what":"opened"}}
            """
        let recorded = try DryRunFiles.events(
            lines, name: "events", ruleSets: ruleSets, start: Timestamp(milliseconds: 0))
        var dryRun = DryRun(ruleSets)
        for one in recorded { dryRun.process(one) }
        dryRun.advance(to: moment("2026-01-21T12:00:00Z"))
        let drops = dryRun.predictions.filter { $0.decision.answer == .drop }
        #expect(
            drops.map { "\($0.user) \($0.rule) \($0.decision.reason.rawValue)" }.sorted() == [
                "1 reminder done", "1 summary done",
            ])
        #expect(
            dryRun.predictions.contains { $0.user.rawValue == "2" && $0.rule == "reminder" && $0.notification != nil })
        #expect(dryRun.refusals.count == 1)
        #expect(throws: DryRunFiles.Problem.self) {
            try DryRunFiles.events(
                #"{"receipt":{"user":"1","rule":"now","what":"seen"}}"#, name: "events", ruleSets: ruleSets,
                start: Timestamp(milliseconds: 0))
        }
    }
}
