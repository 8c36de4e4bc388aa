import Foundation
import PushProtocol
import RuleEngine
import Testing

@testable import RuleLanguage
@testable import Rules

@Suite struct RecipientsTests {
    func recipients(_ to: String, example: String, _ data: String) throws -> [PushProtocol.Notification.Recipient] {
        let rules = try parse(ruleFile(example: example, to: to))
        return try rules.evaluate(event("thing.happened", app: "test", try json(data))).first?.recipients ?? []
    }

    @Test func `one user, a list of users, and no user`() throws {
        func users(_ data: String) throws -> [String] {
            try recipients("{ users: who }", example: "{ who: [1] }", data).map(\.user.rawValue)
        }
        #expect(try users(#"{"who":"a"}"#) == ["a"])
        #expect(try users(#"{"who":7}"#) == ["7"])
        #expect(try users(#"{"who":["b",2,"b","a"]}"#) == ["b", "2", "a"])
        #expect(try users(#"{"who":[]}"#) == [])
    }

    @Test func `recipient objects are filtered and carry their own badges`() throws {
        let to = "{ users: team, id: user.id, badge: unread, where: { role: [{ anything-but: guest }] }, except: by }"
        let example = "{ team: [{ user: { id: 1 }, role: lead, unread: 3 }], by: 9 }"
        let found = try recipients(
            to, example: example,
            #"""
            {"by":"4","team":[{"user":{"id":1},"role":"lead","unread":3},{"user":{"id":2},"role":"guest","unread":1},
             {"user":{"id":3},"role":"x","unread":null},{"user":{"id":4},"role":"x","unread":1}]}
            """#)
        #expect(found.map(\.user) == [user("1"), user("3")])
        #expect(found.map(\.badge) == [3, nil])
    }

    @Test func `several selectors are combined without duplicate users`() throws {
        let found = try recipients(
            "[{ users: a }, { users: b, except: [c, d] }]", example: "{ a: [1], b: [2], c: [3], d: null }",
            #"{"a":[1,2],"b":[2,3,4,5],"c":[3,4],"d":null}"#)
        #expect(found.map(\.user.rawValue) == ["1", "2", "5"])
    }

    @Test(
        arguments: [
            ("{ users: who }", "{}", "to.users", .missing(path: "who")),
            ("{ users: who }", #"{"who":null}"#, "to.users", .null(path: "who")),
            ("{ users: who }", #"{"who":[1,""]}"#, "to.users", .unsuitable(path: "who.1", expected: "a user id")),
            ("{ users: who }", #"{"who":[{"id":1}]}"#, "to.users", .unsuitable(path: "who.0", expected: "a user id")),
            ("{ users: who, except: by }", #"{"who":[1]}"#, "to.except", .missing(path: "by")),
            (
                "{ users: them, id: id }", #"{"them":[3]}"#, "to.users",
                .unsuitable(path: "them.0", expected: "an object")
            ),
            ("{ users: them, id: id }", #"{"them":[{}]}"#, "to.id", .missing(path: "them.0.id")),
            (
                "{ users: them, id: id, badge: n }", #"{"them":[{"id":1,"n":-1}]}"#, "to.badge",
                .unsuitable(path: "them.0.n", expected: "a whole number from 0 to 99999")
            ),
        ] as [(String, String, String, RenderError.Problem)]) func `an invalid user is reported with its path`(
            to: String, data: String, place: String, problem: RenderError.Problem
        ) throws
    {
        #expect(throws: RenderError(rule: "only", place: place, problem: problem)) {
            try recipients(to, example: "{ who: [1], by: 2, them: [{ id: 1, n: 1 }] }", data)
        }
    }

    @Test func `recipients are split into messages of 500, with ids derived from the event`() throws {
        let rules = try parse(ruleFile())
        let largeAudience = event("thing.happened", app: "test", ["users": .array((0..<1201).map { .int($0) })])
        let sent = try #require(try rules.evaluate(largeAudience).first).messages
        #expect(sent.map(\.recipients.count) == [500, 500, 201])
        #expect(Set(sent.map(\.trace.id)).count == 3)
        #expect(Set(sent.flatMap { $0.recipients.map(\.notification) }).count == 1201)
        #expect(try rules.evaluate(largeAudience).first?.messages == sent)
        #expect(sent.allSatisfy { $0.trace.correlation == "e-1" && $0.rule == "only" && $0.expiresAt == nil })
    }

    @Test func `the same event in two apps has different ids`() throws {
        let ids = try ["hr", "warehouse"].map { app in
            let text = ruleFile().replacing("app: test", with: "app: \(app)")
            let draft = try RuleFile.parse(text, file: "\(app).yaml").evaluate(
                event("thing.happened", app: app, ["users": [1]])
            ).first
            return try #require(draft).recipients[0].notification
        }
        #expect(ids[0] != ids[1])
    }

    @Test func `the earlier expiration applies`() throws {
        let rules = try parse(ruleFile(how: "{ expires-after: 1m, delivery: at-most-once }"))
        func rendered(_ arrival: Int64, expiresAt: Date?) throws -> RenderedNotification {
            let happened = event("thing.happened", app: "test", expiresAt: expiresAt, ["users": [1]])
            return try #require(try rules.evaluate(happened, arrivedAt: Timestamp(milliseconds: arrival)).first)
                .rendered
        }
        let soon = Date(timeIntervalSince1970: 100)
        #expect(try rendered(0, expiresAt: soon).expiresAt?.milliseconds == 60_000)
        #expect(try rendered(90_000, expiresAt: soon).expiresAt?.milliseconds == 100_000)
        #expect(try rendered(5, expiresAt: nil).expiresAt?.milliseconds == 60_005)
        #expect(try rendered(0, expiresAt: nil).delivery == .atMostOnce)
    }
}
