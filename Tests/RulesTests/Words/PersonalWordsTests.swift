import Foundation
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RuleDryRun
@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// The variable `recipient`: values of the object that names the user.
@Suite(.timeLimit(.minutes(4))) struct PersonalWordsTests {
    static func rules(
        policy: String = "{ type: bills }", to: String = "{ users: shares, id: user }",
        say: String = #"{ body: "{{recipient.name}}, you owe {{currencyEUR(recipient.amount)}} for {{trip}}" }"#
    ) -> String {
        """
        app: test
        types: { bills: { about: Bills } }
        events:
          bill.split:
            examples: [{ trip: Rome, shares: [{ user: 1, name: Pat, amount: 12.5 }], all: [1] }]
        rules:
          bill:
            when: { event: bill.split }
            to: \(to)
            \(say.isEmpty ? "" : "say: \(say)")
            policy: \(policy)
        """
    }

    static let data = """
        {"trip":"Rome","shares":[{"user":1,"name":"Pat","amount":12.5},{"user":2,"name":"Sam","amount":7}],"all":[1,2]}
        """

    private static func problems(_ text: String) -> [String] {
        do {
            _ = try RuleFile.parse(text, file: "test.yaml")
            return []
        } catch {
            return error.problems.map { "\($0.key): \($0.problem)" }
        }
    }

    @Test func `each recipient gets their own words, with their own ids`() throws {
        let draft = try #require(
            try parse(Self.rules()).evaluate(event("bill.split", app: "test", try json(Self.data))).first)
        let parts = draft.localized([:])
        #expect(
            parts.map { "\($0.users) \($0.content.body ?? "")" } == [
                #"["1"] Pat, you owe €12.50 for Rome"#, #"["2"] Sam, you owe €7.00 for Rome"#,
            ])
        #expect(Set(parts.map(\.rendered.id)).count == 2)
        #expect(Set(parts.flatMap(\.messages).map(\.trace.id)).count == 2)
    }

    @Test func `a recipient without a value refuses the event with its place`() throws {
        let rules = try parse(Self.rules())
        let data = try json(Self.data.replacing(#","name":"Sam""#, with: ""))
        #expect {
            try rules.evaluate(event("bill.split", app: "test", data))
        } throws: { error in
            "\(error)" == "rule bill, say.body: recipient.name is missing from the event"
        }
    }

    @Test func `mistakes say where recipient may stand`() {
        #expect(Self.problems(Self.rules()) == [])
        let missing = PersonalWords.missingID
        #expect(
            Self.problems(Self.rules(to: "{ users: all }"))
                == Array(repeating: "rules.bill.say.body: \(missing)", count: 2))
        #expect(
            Self.problems(Self.rules(policy: #"{ item: "{{recipient.name}}" }"#))
                == ["rules.bill.policy.item: \(missing)"])
        #expect(
            Self.problems(Self.rules(to: "[{ users: shares, id: user }, { users: all }]"))
                == ["rules.bill.to: \(missing)"])
        #expect(
            Self.problems(Self.rules(say: #"{ body: "{{recipient.nmae}}" }"#))
                == ["rules.bill.say.body: no example of the event has “recipient.nmae”; did you mean “recipient.name”?"]
        )
    }

    @Test func `an event with a member recipient keeps it`() throws {
        let text = Self.rules(say: #"{ body: "For {{recipient.name}}" }"#)
            .replacing("trip: Rome,", with: "trip: Rome, recipient: { name: Alex },")
        let data = try json(Self.data).merging(["recipient": ["name": "Kim"]])
        let draft = try #require(try parse(text).evaluate(event("bill.split", app: "test", data)).first)
        #expect(draft.content.body == "For Kim" && draft.localizer == nil)
    }

    @Test func `given quiet hours, then the held words are the recipient's, and a repeat has the same ids`()
        async throws
    {
        let rules = Self.rules()
        try await RulesDatabase.withPool { pool in
            let fixture = try GatheringTests.GatheringFixture(pool, rules)
            try await pool.execute(
                """
                INSERT INTO rules.person (app, user_id, settings) VALUES
                    ('test', '2', '{"quiet_hours":{"start":"10:00","end":"14:00"},"zone":"UTC"}')
                """)
            let words = try await fixture.handleEvent("bill.split", Self.data, id: "a")
            #expect(words == ["1: Pat, you owe €12.50 for Rome"])
            #expect(try await fixture.handleEvent("bill.split", Self.data, id: "a") == words)
            fixture.clock.advance(.seconds(3 * 3600))
            #expect(try await fixture.runWorkers() == ["2: Sam, you owe €7.00 for Rome"])
        }
    }

    @Test func `given a digest, then each entry keeps the recipient's values`() async throws {
        let rules = Self.rules(
            policy: """
                { digest: { after: 1h, keep: { amount: "{{recipient.amount}}" },
                        say: { body: "You owe {{currencyEUR(sum.amount)}} in {{count}} bills" } } }
                """, say: "")
        try await RulesDatabase.withPool { pool in
            let fixture = try GatheringTests.GatheringFixture(pool, rules)
            for id in ["a", "b"] { try await fixture.handleEvent("bill.split", Self.data, id: id) }
            fixture.clock.advance(.seconds(3601))
            #expect(
                try await fixture.runWorkers() == [
                    "1: You owe €25.00 in 2 bills", "2: You owe €14.00 in 2 bills",
                ])
        }
    }

    @Test func `the catalog names the fields of the objects`() throws {
        let catalog = try EventCatalog(Self.rules(), file: "test.yaml")
        let fields = try #require(catalog.events.first).fields
        #expect(fields.first { $0.path == "shares.amount" }?.places == ["rules.bill.say.body"])
        #expect(!fields.contains { $0.path.hasPrefix("recipient") })
    }
}
