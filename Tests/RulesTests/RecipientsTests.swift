import Foundation
import PushProtocol
import Testing

@testable import Rules

@Suite struct RecipientsTests {
    func recipients(_ to: String, example: String, _ data: String) throws -> [NotificationDraft.Recipient] {
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
        #expect(found == [.init(user: user("1"), badge: 3), .init(user: user("3"), badge: nil)])
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
        let draft = try #require(try rules.evaluate(largeAudience).first)
        let now = Timestamp(milliseconds: 5)
        let sent = draft.notifications(about: largeAudience, arrivedAt: now)
        #expect(sent.map(\.recipients.count) == [500, 500, 201])
        #expect(Set(sent.map(\.trace.id)).count == 3)
        #expect(Set(sent.flatMap { $0.recipients.map(\.notification) }).count == 1201)
        #expect(draft.notifications(about: largeAudience, arrivedAt: now) == sent)
        #expect(sent.allSatisfy { $0.trace.correlation == "e-1" && $0.rule == "only" && $0.expiresAt == nil })
    }

    @Test func `the same event in two apps has different ids`() throws {
        let draft = NotificationDraft(
            rule: "r", lane: .bulk, content: Content(title: "t"), expiresAfter: nil,
            recipients: [.init(user: user("1"), badge: nil)])
        let ids = ["hr", "warehouse"].map { app in
            draft.notifications(about: event("t", app: app, [:]), arrivedAt: .now).map(\.recipients[0].notification)
        }
        #expect(ids[0] != ids[1])
    }

    @Test func `the earlier expiration applies`() throws {
        let soon = Date(timeIntervalSince1970: 100)
        let draft = NotificationDraft(
            rule: "r", lane: .bulk, content: Content(title: "t"), expiresAfter: .seconds(60), delivery: .atMostOnce,
            recipients: [.init(user: user("1"), badge: nil)])
        func expiry(_ arrival: Int64) -> Int64? {
            draft.notifications(about: event("t", expiresAt: soon, [:]), arrivedAt: .init(milliseconds: arrival))[0]
                .expiresAt?.milliseconds
        }
        #expect(expiry(0) == 60_000)
        #expect(expiry(90_000) == 100_000)
        #expect(draft.notifications(about: event("t", [:]), arrivedAt: .now)[0].delivery == .atMostOnce)
    }
}
