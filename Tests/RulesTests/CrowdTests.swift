import AMQP
import Foundation
import Logging
import Messaging
import Postgres
import PushProtocol
import TestSupport
import Testing

@testable import DecisionLog
@testable import Rules

/// Statements to more people than one transaction decides about, on a real database.
@Suite(.timeLimit(.minutes(8))) struct CrowdTests {
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

    struct Place: Sendable {
        let pool: PostgresPool
        let clock = DecisionStoreTests.Clock(DecisionStoreTests.now)
        let bus = InMemoryBus(apps: [AppID(rawValue: "test")!])
        let shelf: RuleShelf

        init(_ pool: PostgresPool) throws {
            self.pool = pool
            shelf = RuleShelf(RuleBook([try parse(CrowdTests.rules)]))
        }

        var store: CrowdStore { CrowdStore(decisions: DecisionStore(pool: pool, spread: .zero)) }

        var teller: CrowdTeller {
            CrowdTeller(
                service: "rules", store: store, shelf: shelf, bus: bus, now: { clock.now },
                logger: Logger(label: "tests"))
        }

        /// A team of so many: every tenth is a clerk, and one of three speaks German.
        func gather(_ count: Int, team: String = "t") async throws {
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

        @discardableResult func happen(
            _ id: String, name: String = "Pat", users: String = "[]", team: String = "t"
        ) async throws -> Verdict {
            let handler = EventHandler(shelf: shelf, store: store.decisions, now: { clock.now })
            let inbound = delivered(
                cloudEvent(id: id, data: #"{"team":"\#(team)","users":\#(users),"name":"\#(name)"}"#)
            ).at(clock.now)
            return try await handler.handle([Delivery(inbound: inbound, message: try handler.decode(inbound))])[0]
        }

        /// Takes steps until none is due; how many it were.
        @discardableResult func tell() async throws -> Int {
            var steps = 0
            while try await teller.tellNext() { steps += 1 }
            return steps
        }

        var sent: [PushProtocol.Notification] {
            get throws { try bus.messages(in: CrowdTests.queue).map { try Notification.decode(wireBody: $0.body) } }
        }

        func ids() throws -> [UUID] { try sent.flatMap { $0.recipients.map(\.notification) } }
    }

    func withPlace(_ body: (Place) async throws -> Void) async throws {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in try await body(Place(pool)) }
    }

    @Test func `a crowd is told in steps, everybody once and in their own words`() async throws {
        try await withPlace { (place: Place) async throws in
            try await place.gather(3210)
            #expect(try await place.happen("a", users: #"["v-1","u-7"]"#).outbound.isEmpty)
            // Nothing grows with the crowd where the event is decided about.
            #expect(try await RulesDatabase.counts(place.pool) == [1, 0, 0])
            #expect(try await place.tell() > 6)
            let sent = try place.sent
            #expect(sent.allSatisfy { $0.recipients.count <= Crowd.step })
            #expect(Set(sent.map(\.trace.id)).count == sent.count)
            let told = sent.flatMap { message in
                message.recipients.map { ($0.user.rawValue, message.content.body ?? "") }
            }
            #expect(told.count == 3211 && Set(told.map(\.0)).count == 3211)
            // Of named users the exception is the rule's own: whoever is named hears of it as somebody named.
            #expect(told.contains { $0.0 == "v-1" } && told.contains { $0.0 == "u-7" })
            for (user, body) in told where user.hasPrefix("u-") {
                let number = Int(user.dropFirst(2)) ?? 0
                #expect(body == (number % 3 == 0 ? "Hallo Pat" : "Pat"), "\(user)")
            }
            #expect(try await RulesDatabase.counts(place.pool) == [1, 3211, 0])
            #expect(try await RulesDatabase.count("rules.inbox", place.pool) == 3211)
            #expect(try await RulesDatabase.count("rules.crowd WHERE body IS NULL AND due_at IS NULL", place.pool) == 1)
        }
    }

    @Test func `how far a crowd has come can be asked`() async throws {
        try await withPlace { (place: Place) async throws in
            try await place.gather(1700)
            try await place.happen("a", users: #"["v-1","u-7"]"#)
            func explained(_ user: String? = nil) async throws -> Explanation {
                let question = ExplanationStore.ExplanationQuery(event: "a", user: user, limit: 10)
                return try #require(try await ExplanationStore(place.pool).explain(question).first)
            }
            // Whoever is named and a member counts twice until they had their turn: it is the most that there can be.
            #expect(
                try await explained().fanOuts == [Explanation.FanOut(rule: "everybody", decided: 0, leftAtMost: 1702)])
            #expect(try await explained("u-999").notificationLines == ["  no users yet: the fan-out is in progress"])
            // Half of a step: decided, and no word from the broker.
            place.bus.answer(publishesTo: .notifications, with: [.nacked])
            #expect(try await place.teller.tellNext())
            let fanOuts = [Explanation.FanOut(rule: "everybody", decided: 500, leftAtMost: 1202)]
            let first = try await explained()
            #expect(first.fanOuts == fanOuts && first.traces.count == 10)
            #expect(
                first.lines[1]
                    == "  (fan-out)  everybody  in progress: 500 users decided, at most 1202 left"
            )
            let further = ExplanationStore.ExplanationQuery(event: "a", after: first.next)
            #expect(try await ExplanationStore(place.pool).explain(further).first?.fanOuts == [])
            // One that an earlier version began.
            try await place.pool.execute("UPDATE rules.crowd SET named = NULL, circles = NULL")
            #expect(try await explained().fanOuts.map(\.leftAtMost) == [nil])
            place.clock.advance(CrowdStore.lease)
            try await place.tell()
            #expect(try await explained().fanOuts == [])
            // Of those whom the event names it is known how many are left.
            let names = (0..<1500).map { #""n-\#($0)""# }.joined(separator: ",")
            try await place.happen("l", users: "[\(names)]", team: "none")
            #expect(try await place.teller.tellNext())
            let named = try await ExplanationStore(place.pool).explain(.init(event: "l", limit: 10)).first
            #expect(named?.fanOuts == [Explanation.FanOut(rule: "everybody", decided: 500, leftAtMost: 1000)])
        }
    }

    @Test func `roles, lists and small groups`() async throws {
        try await withPlace { (place: Place) async throws in
            try await place.gather(2000)
            try await place.gather(20, team: "small")
            #expect(try await place.happen("s", team: "small").outbound.count == 2)
            try await place.happen("k", name: "Kim")
            try await place.tell()
            let clerks = try place.sent.filter { $0.rule == "clerks" }.flatMap(\.recipients)
            #expect(clerks.count == 200)
            // Whom the event names is stepped through too.
            let names = (0..<1500).map { #""n-\#($0)""# }.joined(separator: ",")
            #expect(try await place.happen("l", users: "[\(names)]", team: "none").outbound.isEmpty)
            #expect(try await place.tell() == 4)
            let named = try place.sent.flatMap(\.recipients).filter { $0.user.rawValue.hasPrefix("n-") }
            #expect(named.count == 1500 && Set(named.map(\.notification)).count == 1500)
        }
    }

    @Test func `an event that comes again leaves its crowd alone`() async throws {
        try await withPlace { (place: Place) async throws in
            try await place.gather(1200)
            try await place.happen("a")
            #expect(try await place.teller.tellNext())
            #expect(try await place.happen("a").outbound.isEmpty)
            try await place.tell()
            #expect(try await place.happen("a").outbound.isEmpty)
            #expect(try await place.tell() == 0)
            #expect(try place.ids().count == 1200 && Set(try place.ids()).count == 1200)
        }
    }

    @Test func `what a process dies over is published again under the same ids, and charges nobody twice`() async throws
    {
        try await withPlace { (place: Place) async throws in
            try await place.gather(1700)
            try await place.happen("a")
            // Dead after each commit, before a word reached the bus: as if killed there.
            var lost: [UUID] = []
            for _ in 0..<3 {
                guard
                    case .decided(let step) = try await place.store.advance(by: place.shelf.book, now: place.clock.now)
                else { continue }
                lost = step.statements.flatMap { $0.recipients.map(\.notification) }
                // Nobody else takes it before its lease is over.
                guard case .nothing = try await place.store.advance(by: place.shelf.book, now: place.clock.now) else {
                    Issue.record("a step was lent twice")
                    return
                }
                place.clock.advance(CrowdStore.lease)
                // The broker refuses one, the process after that one is alive.
                place.bus.answer(publishesTo: .notifications, with: [.nacked])
                #expect(try await place.teller.tellNext())
                place.clock.advance(CrowdStore.lease)
                #expect(try await place.teller.tellNext())
                #expect(Set(lost).isSubset(of: Set(try place.ids())))
            }
            try await place.tell()
            let ids = try place.ids()
            #expect(Set(ids).count == 1700)
            #expect(try await RulesDatabase.count("rules.decision", place.pool) == 1700)
            #expect(try await RulesDatabase.count("rules.inbox", place.pool) == 1700)
            // The cap allows one more, which it would not if somebody had been charged twice.
            try await place.happen("b")
            try await place.tell()
            #expect(Set(try place.ids()).count == 3400)
            #expect(try await RulesDatabase.count("rules.decision WHERE answer <> 'push'", place.pool) == 0)
        }
    }

    @Test func `two processes take turns, and nobody is told twice`() async throws {
        try await withPlace { (place: Place) async throws in
            try await place.gather(2400)
            for id in ["a", "b"] { try await place.happen(id) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<4 { group.addTask { try await place.tell() } }
                try await group.waitForAll()
            }
            try await place.tell()
            let ids = try place.ids()
            #expect(ids.count == 4800 && Set(ids).count == 4800)
        }
    }

    @Test func `whoever is forgotten while a crowd is told does not hear of it`() async throws {
        try await withPlace { (place: Place) async throws in
            try await place.gather(1200)
            try await place.happen("a")
            #expect(try await place.teller.tellNext())
            let person = PersonKey(app: AppID(rawValue: "test")!, user: user("u-999"))
            try await place.pool.execute(
                "INSERT INTO rules.erasure (person, erased_at) VALUES (\(person.digest), \(place.clock.now.date))")
            try await place.tell()
            #expect(try place.ids().count == 1199)
            // No name is left in what is remembered of a crowd.
            #expect(try await RulesDatabase.count("rules.crowd WHERE told = '' AND body IS NULL", place.pool) == 1)
        }
    }

    @Test func `a rule that is gone ends its crowd, and says so`() async throws {
        try await withPlace { (place: Place) async throws in
            try await place.gather(1300)
            try await place.happen("a")
            #expect(try await place.teller.tellNext())
            place.shelf.put(RuleBook([try parse(Self.rules.replacing("everybody:", with: "others:"))]))
            try await place.tell()
            #expect(try place.ids().count == Crowd.step)
            let last: String = try await place.pool.query(
                "SELECT user_id || ' ' || answer || ' ' || reason FROM rules.decision WHERE answer = 'drop'"
            ).single()
            #expect(last == "(everybody who was left) drop rule-gone")
        }
    }

    @Test func `a page ends where one of its groups may go on`() throws {
        func member(_ id: String) -> Circle.Member { Circle.Member(user: user(id), role: nil) }
        func part(_ ids: [String], isFull: Bool, except: Set<UserID> = []) -> CrowdPage.Part {
            CrowdPage.Part(
                circle: Circle(group: "g", roles: nil, except: except), members: ids.map(member),
                end: isFull ? ids.last : nil)
        }
        let happened = event("thing.happened", app: "test", ["team": "t", "users": ["é", "a", "z"], "name": "Pat"])
        let rules = try parse(Self.rules)
        let statement = try #require(
            EventCase(happened, ruleSet: rules, arrivedAt: .now, drafts: try rules.evaluate(happened)).statements.first)
        func page(_ told: String, _ parts: [CrowdPage.Part], limit: Int = 10) -> ([String], String?) {
            let page = CrowdPage(statement, after: told, parts, limit: limit)
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
