import AMQP
import Foundation
import Logging
import Messaging
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import DecisionLog
@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// Fan-out to more recipients than one transaction handles, on a real database.
@Suite(.timeLimit(.minutes(8))) struct LargeAudienceTests {
    static let rules = """
        app: test
        types: { news: { about: News } }
        caps: { hourly: { at-most: 2, within: 1h } }
        events:
          team.listed: { examples: [{ team: t, members: [{ id: a, role: clerk }] }] }
          thing.happened: { examples: [{ team: t, users: [1], name: Pat }, { team: t, users: [], name: Kim }] }
        groups:
          - { event: team.listed, group: "{{team}}", members: members, id: id, role: role }
        rules:
          everybody:
            when: { event: thing.happened }
            to: [{ users: users }, { group: "{{team}}", except: users }]
            say: { body: "{{name}}", languages: { de: { body: "Hallo {{name}}" } } }
            policy: { type: news, caps: hourly }
          clerks:
            when: { event: thing.happened, data: { name: [Kim] } }
            to: { group: "{{team}}", role: clerk }
            say: { body: "{{name}} for clerks" }
        """
    static let queue = WorkQueue.registryNotifications(.interactive).name

    struct FanOutFixture: Sendable {
        let pool: PostgresPool
        let clock = DecisionStoreTests.Clock(DecisionStoreTests.now)
        let bus = InMemoryBus(apps: [AppID(rawValue: "test")!])
        let currentRules: CurrentRules

        init(_ pool: PostgresPool) throws {
            self.pool = pool
            currentRules = CurrentRules(RuleSets([try parse(LargeAudienceTests.rules)]))
        }

        var store: FanOutStore { FanOutStore(decisions: DecisionStore(pool: pool, spread: .zero)) }

        var teller: FanOutWorker {
            FanOutWorker(
                service: "rules", store: store, currentRules: currentRules, bus: bus, now: { clock.now },
                logger: Logger(label: "tests"))
        }

        /// Adds `count` members to a team: every tenth is a clerk, and one of three uses German.
        func addMembers(_ count: Int, team: String = "t") async throws {
            try await pool.execute(
                """
                INSERT INTO rules.member (app, circle, user_id, role, has_left, at)
                SELECT 'test', \(team), 'u-' || n, CASE WHEN n % 10 = 0 THEN 'clerk' END, false, now()
                FROM generate_series(1, \(count)) AS n
                """)
            try await pool.execute(
                """
                INSERT INTO rules.person (app, user_id, settings)
                SELECT 'test', 'u-' || n, '{"language": "de"}' FROM generate_series(1, \(count)) AS n WHERE n % 3 = 0
                ON CONFLICT DO NOTHING
                """)
        }

        @discardableResult func handleEvent(
            _ id: String, name: String = "Pat", users: String = "[]", team: String = "t"
        ) async throws -> Verdict {
            let handler = EventHandler(currentRules: currentRules, store: store.decisions, now: { clock.now })
            let inbound = delivered(
                cloudEvent(id: id, data: #"{"team":"\#(team)","users":\#(users),"name":"\#(name)"}"#)
            ).at(clock.now)
            return try await handler.handle([Delivery(inbound: inbound, message: try handler.decode(inbound))])[0]
        }

        /// Runs fan-out steps until none is due, and returns their number.
        @discardableResult func runSteps() async throws -> Int {
            var steps = 0
            while try await teller.processNext() { steps += 1 }
            return steps
        }

        var sent: [PushProtocol.Notification] {
            get throws {
                try bus.messages(in: LargeAudienceTests.queue).map { try Notification.decode(wireBody: $0.body) }
            }
        }

        func ids() throws -> [UUID] { try sent.flatMap { $0.recipients.map(\.notification) } }
    }

    func withFixture(_ body: (FanOutFixture) async throws -> Void) async throws {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in try await body(FanOutFixture(pool)) }
    }

    @Test func `a large audience is notified in steps, each member once and in their language`() async throws {
        try await withFixture { (fixture: FanOutFixture) async throws in
            try await fixture.addMembers(3210)
            #expect(try await fixture.handleEvent("a", users: #"["v-1","u-7"]"#).outbound.isEmpty)
            // The event's own transaction does not grow with the audience.
            #expect(try await RulesDatabase.counts(fixture.pool) == [1, 0, 0])
            #expect(try await fixture.runSteps() > 6)
            let sent = try fixture.sent
            #expect(sent.allSatisfy { $0.recipients.count <= LargeAudience.step })
            #expect(Set(sent.map(\.trace.id)).count == sent.count)
            let received = sent.flatMap { message in
                message.recipients.map { ($0.user.rawValue, message.content.body ?? "") }
            }
            #expect(received.count == 3211 && Set(received.map(\.0)).count == 3211)
            // `except` applies to the group; a user named by the event is notified as a named user.
            #expect(received.contains { $0.0 == "v-1" } && received.contains { $0.0 == "u-7" })
            for (user, body) in received where user.hasPrefix("u-") {
                let number = Int(user.dropFirst(2)) ?? 0
                #expect(body == (number % 3 == 0 ? "Hallo Pat" : "Pat"), "\(user)")
            }
            #expect(try await RulesDatabase.counts(fixture.pool) == [1, 3211, 0])
            #expect(try await RulesDatabase.count("rules.inbox", fixture.pool) == 3211)
            #expect(
                try await RulesDatabase.count("rules.crowd WHERE body IS NULL AND due_at IS NULL", fixture.pool) == 1)
        }
    }

    @Test func `a fan-out's progress can be queried`() async throws {
        try await withFixture { (fixture: FanOutFixture) async throws in
            try await fixture.addMembers(1700)
            try await fixture.handleEvent("a", users: #"["v-1","u-7"]"#)
            func explained(_ user: String? = nil) async throws -> Explanation {
                let question = ExplanationStore.ExplanationQuery(event: "a", user: user, limit: 10)
                return try #require(try await ExplanationStore(fixture.pool).explain(question).first)
            }
            // A user named by the event and in the group counts twice until handled: the number is an upper bound.
            #expect(
                try await explained().fanOuts == [Explanation.FanOut(rule: "everybody", decided: 0, leftAtMost: 1702)])
            #expect(try await explained("u-999").notificationLines == ["  no users yet: the fan-out is in progress"])
            // Half a step: decided, and not confirmed by the broker.
            fixture.bus.answer(publishesTo: .notifications, with: [.nacked])
            #expect(try await fixture.teller.processNext())
            let fanOuts = [Explanation.FanOut(rule: "everybody", decided: 500, leftAtMost: 1202)]
            let first = try await explained()
            #expect(first.fanOuts == fanOuts && first.traces.count == 10)
            #expect(
                first.lines[1]
                    == "  (fan-out)  everybody  in progress: 500 users decided, at most 1202 left"
            )
            let further = ExplanationStore.ExplanationQuery(event: "a", after: first.next)
            #expect(try await ExplanationStore(fixture.pool).explain(further).first?.fanOuts == [])
            // A fan-out that an earlier version started.
            try await fixture.pool.execute("UPDATE rules.crowd SET named = NULL, circles = NULL")
            #expect(try await explained().fanOuts.map(\.leftAtMost) == [nil])
            fixture.clock.advance(FanOutStore.lease)
            try await fixture.runSteps()
            #expect(try await explained().fanOuts == [])
            // The number of remaining named users is known.
            let names = (0..<1500).map { #""n-\#($0)""# }.joined(separator: ",")
            try await fixture.handleEvent("l", users: "[\(names)]", team: "none")
            #expect(try await fixture.teller.processNext())
            let named = try await ExplanationStore(fixture.pool).explain(.init(event: "l", limit: 10)).first
            #expect(named?.fanOuts == [Explanation.FanOut(rule: "everybody", decided: 500, leftAtMost: 1000)])
        }
    }

    @Test func `roles, lists and small groups`() async throws {
        try await withFixture { (fixture: FanOutFixture) async throws in
            try await fixture.addMembers(2000)
            try await fixture.addMembers(20, team: "small")
            #expect(try await fixture.handleEvent("s", team: "small").outbound.count == 2)
            try await fixture.handleEvent("k", name: "Kim")
            try await fixture.runSteps()
            let clerks = try fixture.sent.filter { $0.rule == "clerks" }.flatMap(\.recipients)
            #expect(clerks.count == 200)
            // Users named by the event are handled in steps too.
            let names = (0..<1500).map { #""n-\#($0)""# }.joined(separator: ",")
            #expect(try await fixture.handleEvent("l", users: "[\(names)]", team: "none").outbound.isEmpty)
            #expect(try await fixture.runSteps() == 4)
            let named = try fixture.sent.flatMap(\.recipients).filter { $0.user.rawValue.hasPrefix("n-") }
            #expect(named.count == 1500 && Set(named.map(\.notification)).count == 1500)
        }
    }

    @Test func `a repeated event does not restart its fan-out`() async throws {
        try await withFixture { (fixture: FanOutFixture) async throws in
            try await fixture.addMembers(1200)
            try await fixture.handleEvent("a")
            #expect(try await fixture.teller.processNext())
            #expect(try await fixture.handleEvent("a").outbound.isEmpty)
            try await fixture.runSteps()
            #expect(try await fixture.handleEvent("a").outbound.isEmpty)
            #expect(try await fixture.runSteps() == 0)
            #expect(try fixture.ids().count == 1200 && Set(try fixture.ids()).count == 1200)
        }
    }

    @Test func `after a crash, a step is published again under the same ids and charges no cap twice`() async throws {
        try await withFixture { (fixture: FanOutFixture) async throws in
            try await fixture.addMembers(1700)
            try await fixture.handleEvent("a")
            // Crashes after each commit, before the publish.
            var lost: [UUID] = []
            for _ in 0..<3 {
                guard
                    case .decided(let step) = try await fixture.store.advance(
                        by: fixture.currentRules.ruleSets, now: fixture.clock.now)
                else { continue }
                lost = step.drafts.flatMap { $0.recipients.map(\.notification) }
                // No other worker takes it before its lease expires.
                guard
                    case .nothing = try await fixture.store.advance(
                        by: fixture.currentRules.ruleSets, now: fixture.clock.now)
                else {
                    Issue.record("a step was leased twice")
                    return
                }
                fixture.clock.advance(FanOutStore.lease)
                // The broker refuses one publish; the process continues.
                fixture.bus.answer(publishesTo: .notifications, with: [.nacked])
                #expect(try await fixture.teller.processNext())
                fixture.clock.advance(FanOutStore.lease)
                #expect(try await fixture.teller.processNext())
                #expect(Set(lost).isSubset(of: Set(try fixture.ids())))
            }
            try await fixture.runSteps()
            let ids = try fixture.ids()
            #expect(Set(ids).count == 1700)
            #expect(try await RulesDatabase.count("rules.decision", fixture.pool) == 1700)
            #expect(try await RulesDatabase.count("rules.inbox", fixture.pool) == 1700)
            // The cap allows one more push: no recipient was charged twice.
            try await fixture.handleEvent("b")
            try await fixture.runSteps()
            #expect(Set(try fixture.ids()).count == 3400)
            #expect(try await RulesDatabase.count("rules.decision WHERE answer <> 'push'", fixture.pool) == 0)
        }
    }

    @Test func `two processes share a fan-out, and each member is notified once`() async throws {
        try await withFixture { (fixture: FanOutFixture) async throws in
            try await fixture.addMembers(2400)
            for id in ["a", "b"] { try await fixture.handleEvent(id) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<4 { group.addTask { try await fixture.runSteps() } }
                try await group.waitForAll()
            }
            try await fixture.runSteps()
            let ids = try fixture.ids()
            #expect(ids.count == 4800 && Set(ids).count == 4800)
        }
    }

    @Test func `a user erased during a fan-out gets no notification`() async throws {
        try await withFixture { (fixture: FanOutFixture) async throws in
            try await fixture.addMembers(1200)
            try await fixture.handleEvent("a")
            #expect(try await fixture.teller.processNext())
            let person = PersonKey(app: AppID(rawValue: "test")!, user: user("u-999"))
            try await fixture.pool.execute(
                "INSERT INTO rules.erasure (person, erased_at) VALUES (\(person.digest), \(fixture.clock.now.date))")
            try await fixture.runSteps()
            #expect(try fixture.ids().count == 1199)
            // The stored fan-out contains no user id.
            #expect(try await RulesDatabase.count("rules.crowd WHERE told = '' AND body IS NULL", fixture.pool) == 1)
        }
    }

    @Test func `a removed rule ends its fan-out with a reason`() async throws {
        try await withFixture { (fixture: FanOutFixture) async throws in
            try await fixture.addMembers(1300)
            try await fixture.handleEvent("a")
            #expect(try await fixture.teller.processNext())
            fixture.currentRules.put(RuleSets([try parse(Self.rules.replacing("everybody:", with: "others:"))]))
            try await fixture.runSteps()
            #expect(try fixture.ids().count == LargeAudience.step)
            let last: String = try await fixture.pool.query(
                "SELECT user_id || ' ' || answer || ' ' || reason FROM rules.decision WHERE answer = 'drop'"
            ).single()
            #expect(last == "(everybody who was left) drop rule-gone")
        }
    }

    @Test func `a page ends at the last id that every unfinished group has reached`() throws {
        func member(_ id: String) -> GroupReference.Member { GroupReference.Member(user: user(id), role: nil) }
        func part(_ ids: [String], isFull: Bool, except: Set<UserID> = []) -> FanOutPage.Part {
            FanOutPage.Part(
                groupReference: GroupReference(group: "g", roles: nil, except: except), members: ids.map(member),
                end: isFull ? ids.last : nil)
        }
        let happened = event("thing.happened", app: "test", ["team": "t", "users": ["é", "a", "z"], "name": "Pat"])
        let rules = try parse(Self.rules)
        let pending = try #require(
            EventCase(happened, ruleSet: rules, arrivedAt: .now, drafts: try rules.evaluate(happened))
                .drafts.first)
        func page(_ previous: String, _ parts: [FanOutPage.Part], limit: Int = 10) -> ([String], String?) {
            let page = FanOutPage(pending, after: previous, parts, limit: limit)
            return (page.recipients.map(\.user.rawValue), page.end)
        }
        #expect(page("", [part(["b", "c"], isFull: false)]) == (["a", "b", "c", "z", "é"], nil))
        #expect(
            page("", [part(["b", "c"], isFull: true), part(["b", "d"], isFull: false)]) == (["a", "b", "c"], "c"))
        #expect(page("", [part(["b", "c"], isFull: false)], limit: 2) == (["a", "b"], "b"))
        #expect(page("z", []) == (["é"], nil))
        #expect(page("a", [part(["b"], isFull: true, except: [user("b")])]) == ([], "b"))
        #expect(page("é", []) == ([], nil))
    }
}
