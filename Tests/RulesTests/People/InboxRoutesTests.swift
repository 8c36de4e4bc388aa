import Foundation
import HTTPTypes
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import Rules

/// `/v1/inbox` over HTTP.
@Suite(.timeLimit(.minutes(3))) struct InboxRoutesTests {
    /// Handles `count` events, one a second, alternating between two rooms; user 2 gets every third.
    private static func handleEvent(_ count: Int, _ http: RulesHTTP) async throws {
        for index in 0..<count {
            _ = try await http.fixture.handleEvent(
                "e\(index)", users: index % 3 == 0 ? "[1,2]" : "[1]", room: index % 2)
            http.clock.advance(.seconds(1))
        }
    }

    @Test func `the inbox has every notification, pushed or not`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            #expect(try await http.send(.get, "/v1/inbox").body == ["items": [], "next": nil, "unread": 0])
            #expect(try await http.send(.patch, "/v1/preferences", ["enabled": false]).status == 200)
            _ = try await http.fixture.handleEvent("a")
            let answer = try await http.send(.get, "/v1/inbox")
            let item = try #require(answer.body["items"]?.array?.first)
            #expect(answer.body["unread"] == 1 && answer.body["next"] == JSONValue.null)
            let expected: JSONValue = [
                "id": item["id"]!, "at": "2026-01-10T12:00:00.000Z", "read_at": nil, "rule": "only", "type": "chat",
                "title": nil, "subtitle": nil, "body": "Pat", "image": nil, "deep_link": nil, "category": nil,
                "thread": "1", "data": [:],
            ]
            #expect(item == expected)
            let id = try #require(item["id"]?.string)
            #expect(try await http.send(.get, "/v1/inbox/\(id)").body == item)
            for user in ["2", nil] {
                #expect(try await http.send(.get, "/v1/inbox/\(id)", user: user).status == (user == nil ? 401 : 404))
            }
            #expect(try await http.send(.get, "/v1/inbox/x").status == 400)
            #expect(try await http.send(.get, "/v1/inbox/\(UUID())").status == 404)
        }
    }

    @Test func `pages list every item once, also when items are added and deleted meanwhile`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            try await Self.handleEvent(23, http)
            let all = try await http.inbox("?limit=200")
            #expect(all.count == 23)
            var seen: [String] = []
            var query = "?limit=5"
            while true {
                let page = try await http.send(.get, "/v1/inbox\(query)")
                let ids = page.body["items"]?.array?.compactMap { $0["id"]?.string } ?? []
                #expect(ids.count <= 5)
                seen += ids
                guard let next = page.body["next"]?.string else { break }
                query = "?limit=5&before=\(next)"
                if seen.count == 5 {
                    try await Self.handleEvent(0, http)
                    _ = try await http.fixture.handleEvent("later")
                    // The last item of the page.
                    #expect(try await http.send(.delete, "/v1/inbox/\(ids.last!)").status == 204)
                }
            }
            #expect(seen == all)
            #expect(try await http.inbox("?limit=200").count == 23)
        }
    }

    @Test func `items with the same time are not lost between pages`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            for index in 0..<7 { _ = try await http.fixture.handleEvent("e\(index)") }
            var seen: [String] = []
            var before = ""
            for _ in 0..<4 {
                let page = try await http.send(.get, "/v1/inbox?limit=2\(before)")
                seen += page.body["items"]?.array?.compactMap { $0["id"]?.string } ?? []
                before = page.body["next"]?.string.map { "&before=\($0)" } ?? ""
            }
            #expect(seen.count == 7 && Set(seen).count == 7 && before.isEmpty)
        }
    }

    @Test func `ids, a thread, all up to an id, and all can be marked as read`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            try await Self.handleEvent(12, http)
            let ids = try await http.inbox()
            func read(_ body: JSONValue, user: String = "1") async throws -> [Int64?] {
                let answer = try await http.send(.post, "/v1/inbox/read", body, user: user)
                #expect(answer.status == 200)
                return [answer.body["marked"]?.int, answer.body["unread"]?.int]
            }
            // The latest item is e11, in room 1.
            #expect(try await read(["ids": [.string(ids[0])]]) == [1, 11])
            #expect(
                try await read(["ids": [.string(ids[0]), .string(ids[1]), .string(UUID().uuidString)]]) == [1, 10])
            #expect(try await read(["thread": "1"]) == [5, 5])
            #expect(try await http.inbox("?unread=true").count == 5)
            #expect(try await http.inbox("?unread=true&thread=1").isEmpty)
            #expect(try await http.inbox("?thread=1").count == 6)
            // e5 to e0 are left: e4, e2 and e0 are in room 0.
            #expect(try await read(["until": .string(ids[6])]) == [3, 2])
            #expect(try await read(["until": .string(UUID().uuidString)]) == [0, 2])
            #expect(try await read(["all": true]) == [2, 0])
            #expect(try await read(["all": true]) == [0, 0])
            #expect(try await http.unread(user: "2") == 4)
            // A user cannot mark another user's items.
            #expect(try await read(["ids": .array(ids.map(JSONValue.string))], user: "2") == [0, 4])
            #expect(try await read(["until": .string(ids[0])], user: "2") == [0, 4])
            for wrong: JSONValue in [
                [:], ["all": false], ["ids": []], ["ids": ["x"]], ["ids": [.string(ids[0])], "all": true],
                ["unread": 1],
                ["thread": ""], ["until": 1],
            ] {
                #expect(try await http.send(.post, "/v1/inbox/read", wrong).status == 400, "\(wrong)")
            }
        }
    }

    @Test func `a deleted item is not counted, and a repeated event does not restore it`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            _ = try await http.fixture.handleEvent("a", users: "[1,2]")
            let id = try #require(try await http.inbox().first)
            #expect(try await http.send(.delete, "/v1/inbox/\(id)", user: "2").status == 204)
            #expect(try await http.unread() == 1)
            for _ in 0..<2 { #expect(try await http.send(.delete, "/v1/inbox/\(id)").status == 204) }
            #expect(try await http.unread() == 0)
            _ = try await http.fixture.handleEvent("a", users: "[1,2]")
            #expect(try await http.inbox().isEmpty)
            #expect(try await http.inbox(user: "2").count == 1)
        }
    }

    @Test(arguments: [
        "limit=0", "limit=201", "limit=x", "before=x", "before=1_x", "before=-1_\(UUID())", "unread=1", "thread=",
    ])
    func `an invalid query parameter is refused by name`(query: String) async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let answer = try await http.send(.get, "/v1/inbox?\(query)")
            #expect(answer.status == 400)
            #expect(answer.body["detail"]?.string?.contains(query.prefix { $0 != "=" }) == true)
        }
    }
}
