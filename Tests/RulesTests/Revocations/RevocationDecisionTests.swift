import DecisionLog
import Foundation
import Messaging
import PushProtocol
import Testing
import TestSupport

@testable import RuleDryRun
@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// Revocations that are stored before a notification is decided, without a database.
@Suite struct RevocationDecisionTests {
    static let app = AppID(rawValue: "test")!
    static let noon = moment("2026-01-10T12:00:00Z")
    static let item = ItemKey(app: app, item: "m/1")
    static let rules = """
        app: test
        events: { message.sent: { examples: [{ id: 1, users: [1, 2] }] } }
        rules:
          only:
            when: { event: message.sent }
            to: { users: users }
            say: { body: Hello }
            policy: { item: "m/{{id}}" }
        """

    /// The decision about each user of an event at noon.
    private func decided(_ revoked: (EventCase) -> RevocationState, _ rules: String = RevocationDecisionTests.rules)
        throws -> [String: String]
    {
        let ruleSet = try parse(rules)
        var happened = event("message.sent", app: "test", ["id": 1, "users": [1, 2]])
        happened.time = Self.noon.date
        let one = EventCase(
            happened, ruleSet: ruleSet, arrivedAt: Self.noon, drafts: try ruleSet.evaluate(happened))
        var people: [PersonKey: Person] = [:]
        let decisions = one.decisions(&people, ItemState(revoked: revoked(one)), now: Self.noon)
        return Dictionary(uniqueKeysWithValues: decisions.map { ($0.person.user.rawValue, $0.decision.readableText) })
    }

    @Test func `given a revoked event, then its notifications are dropped, for one user or for all`() throws {
        func revoked(_ users: Set<UserID?>) -> (EventCase) -> RevocationState {
            { one in
                var state = RevocationState()
                state.events[one.record.key] = users
                return state
            }
        }
        #expect(try decided(revoked([nil])) == ["1": "drop (revoked)", "2": "drop (revoked)"])
        #expect(try decided(revoked([user("2")])) == ["1": "push (wanted)", "2": "drop (revoked)"])
        #expect(try decided(revoked([user("3")])) == ["1": "push (wanted)", "2": "push (wanted)"])
        #expect(try decided { _ in RevocationState() } == ["1": "push (wanted)", "2": "push (wanted)"])
    }

    @Test(arguments: [(-1, "push (wanted)"), (0, "drop (revoked)"), (1, "drop (revoked)")])
    func `given a revoked item, then events up to its time are dropped`(seconds: Int, decision: String) throws {
        let result = try decided { _ in
            var state = RevocationState()
            state.revoke(Self.item, nil, until: Self.noon + .seconds(seconds))
            return state
        }
        #expect(result == ["1": decision, "2": decision])
    }

    @Test func `given two revocations of an item, then the latest time counts, by user`() {
        var state = RevocationState()
        state.revoke(Self.item, user("1"), until: Self.noon + .seconds(9))
        state.revoke(Self.item, user("1"), until: Self.noon)
        state.revoke(Self.item, nil, until: Self.noon)
        func covers(_ user: UserID?, _ seconds: Int) -> Bool {
            state.covers(UUID(), Self.item, user, occurredAt: Self.noon + .seconds(seconds))
        }
        #expect(covers(user("1"), 9) && !covers(user("1"), 10))
        #expect(covers(user("2"), 0) && !covers(user("2"), 1))
        #expect(covers(nil, 0) && !covers(nil, 1))
        #expect(!state.covers(UUID(), nil, user("1"), occurredAt: Self.noon))
    }

    @Test func `given a critical type, then a revocation is stronger`() throws {
        let critical = Self.rules.replacing(
            "events:", with: "types: { alarm: { about: Help, critical: true } }\nevents:"
        ).replacing("policy: {", with: "policy: { type: alarm,")
        let result = try decided(
            { one in
                var state = RevocationState()
                state.events[one.record.key] = [nil]
                return state
            }, critical)
        #expect(result == ["1": "drop (revoked)", "2": "drop (revoked)"])
    }

    @Test(arguments: [("{ audience: everyone }", ""), ("{ fcm-topic: news }", "    how: { lane: bulk }")])
    func `given an audience or a broadcast, then a revoked event publishes no message`(to: String, how: String) throws {
        let rules = Self.rules.replacing("{ users: users }", with: to).replacing(
            #"    policy: { item: "m/{{id}}" }"#, with: how)
        let ruleSet = try parse(rules)
        let happened = event("message.sent", app: "test", ["id": 1, "users": [1, 2]])
        let one = EventCase(happened, ruleSet: ruleSet, arrivedAt: Self.noon, drafts: try ruleSet.evaluate(happened))
        for (users, number) in [([nil], 0), ([user("1")], 1), ([], 1)] as [(Set<UserID?>, Int)] {
            var state = RevocationState()
            state.events[one.record.key] = users
            var people: [PersonKey: Person] = [:]
            let decided = one.decisions(&people, ItemState(revoked: state), now: Self.noon)
            #expect(decided.map { $0.decision.reason == .revoked } == [number == 0])
            let answers = Dictionary(uniqueKeysWithValues: decided.map { ($0.notification, $0.decision.answer) })
            let verdict = try EventDraft(one, arrivedAt: Self.noon).verdict(answers, one.drafts, unread: [:])
            #expect(verdict.outbound.count == number)
        }
    }
}

/// The body of `POST /v1/operator/revocations`.
@Suite struct RevocationBodyTests {
    private func request(_ text: String) throws -> RevocationRequest {
        try RevocationBody(Array(text.utf8)).request
    }

    @Test func `every member is read`() throws {
        let app = RevocationDecisionTests.app
        #expect(
            try request(#"{"app":"test","event":"e 1"}"#) == RevocationRequest(app: app, target: .event("e 1")))
        let id = UUID()
        #expect(
            try request(
                #"{"app":"test","notification":"\#(id)","user":"7","inbox":"keep","reason":"wrong text"}"#)
                == RevocationRequest(
                    app: app, target: .notification(id), user: user("7"), inbox: .keep, reason: "wrong text"))
        #expect(
            try request(#"{"app":"test","event":"e","ahead":true,"user":null,"inbox":null,"reason":null}"#)
                == RevocationRequest(app: app, target: .event("e"), isAhead: true))
    }

    @Test(arguments: [
        (#"{"event":"e"}"#, "app"), (#"{"app":"A","event":"e"}"#, "app"),
        (#"{"app":"test"}"#, "event or notification"),
        (#"{"app":"test","event":"e","notification":null}"#, "event or notification"),
        (#"{"app":"test","event":null}"#, "event"), (#"{"app":"test","event":""}"#, "event"),
        (#"{"app":"test","event":"a\nb"}"#, "event"), (#"{"app":"test","notification":"x"}"#, "notification"),
        (#"{"app":"test","event":"e","user":""}"#, "user"), (#"{"app":"test","event":"e","inbox":"drop"}"#, "inbox"),
        (#"{"app":"test","event":"e","reason":""}"#, "reason"), (#"{"app":"test","event":"e","ahead":1}"#, "ahead"),
        (#"{"app":"test","notification":"5b0c4a52-93d1-5b0e-8f55-0d6c1f7a2e90","ahead":false}"#, "ahead"),
        (#"{"app":"test","event":"e","evnt":"f"}"#, "unknown"), ("[]", "the body"),
    ])
    func `a wrong member is refused by name`(text: String, name: String) {
        let error = #expect(throws: WireError.self) { try request(text) }
        #expect(error?.description.contains(name) == true, "\(String(describing: error))")
    }

    @Test func `a repeated request has the same id, and every other request another one`() {
        let app = RevocationDecisionTests.app
        let one = RevocationRequest(app: app, target: .event("e"))
        var again = one
        (again.reason, again.isAhead) = ("another", true)
        #expect(again.id == one.id)
        let others = [
            RevocationRequest(app: app, target: .event("f")),
            RevocationRequest(app: AppID(rawValue: "other")!, target: .event("e")),
            RevocationRequest(app: app, target: .event("e"), user: user("1")),
            RevocationRequest(app: app, target: .event("e"), inbox: .keep),
            RevocationRequest(app: app, target: .notification(UUID())),
        ]
        #expect(Set(others.map(\.id) + [one.id]).count == 6)
    }
}
