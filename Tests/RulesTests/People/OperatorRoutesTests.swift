import FoundationEssentials
import HTTPTypes
import HummingbirdTesting
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// `/v1/operator` over HTTP.
@Suite(.timeLimit(.minutes(3))) struct OperatorRoutesTests {
    private static let events = "/v1/operator/events"

    @Test func `an explanation has every decision of a user and the provider's outcome`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let key = try await http.key(1, for: [.readEvents])
            try await http.fixture.setPreferences(PersonalSettings(isOn: false), user: "2")
            _ = try await http.fixture.handleEvent("e 1/ä", users: "[1,2]")
            let asked = "\(Self.events)/e%201%2F%C3%A4?app=test"
            let before = try await http.send(.get, asked, user: key)
            #expect(before.status == 200)
            let stories = try #require(before.body["events"]?.array?.first?["stories"]?.array)
            #expect(stories.map { $0["user"] } == ["1", "2"])
            let notification = try #require(stories[0]["notification"]?.string.flatMap(UUID.init))
            let device = UUID()
            let outcome = Outcome(
                notification: notification, device: device, answer: .rejected(reason: "BadTopic", suspectToken: false),
                at: http.clock.now, registeredAt: nil)
            try await OutcomeStore(pool: http.pool).keep([
                Outcomes(
                    trace: Trace(id: UUID(), correlation: "e", causation: "e"), app: RulesHTTP.app, origin: .apns,
                    environment: .production, lane: .interactive, outcomes: [outcome])
            ])
            let receipts: JSONValue = ["receipts": [["id": stories[0]["notification"]!, "what": "opened"]]]
            #expect(try await http.send(.post, "/v1/receipts", receipts).status == 204)

            let answer = try await http.send(.get, asked, user: key).body
            let now: JSONValue = "2026-01-10T12:00:00.000Z"
            let outcomes: JSONValue = [
                [
                    "at": now, "origin": "apns", "device": .string(device.uuidString.lowercased()),
                    "disposition": "rejected", "reason": "BadTopic",
                ]
            ]
            let wanted: JSONValue = ["at": now, "answer": "push", "reason": "wanted", "until": nil]
            let unwanted: JSONValue = ["at": now, "answer": "inbox", "reason": "switched-off", "until": nil]
            let first: JSONValue = [
                "notification": stories[0]["notification"]!, "user": "1", "rule": "only", "decisions": [wanted],
                "outcomes": outcomes, "inbox": ["read_at": now], "waits_until": nil,
                "receipts": [["at": now, "what": "opened"]],
            ]
            let second: JSONValue = [
                "notification": stories[1]["notification"]!, "user": "2", "rule": "only", "decisions": [unwanted],
                "outcomes": [], "inbox": ["read_at": nil], "waits_until": nil, "receipts": [],
            ]
            let event: JSONValue = [
                "app": "test", "source": "/up", "id": "e 1/ä", "type": "thing.happened", "arrived_at": now,
                "rule_set": answer["events"]!.array![0]["rule_set"]!, "next": nil, "crowds": [], "revocations": [],
                "clears": [],
                "stories": [first, second],
            ]
            let reasons: JSONValue = [
                "wanted": "no preference or limit prevents it",
                "switched-off": "the user has switched off all notifications",
            ]
            let expected: JSONValue = ["events": [event], "reasons": reasons]
            #expect(answer == expected)
        }
    }

    @Test func `slow operator statements do not take connections from users and the stage`() async throws {
        try await RulesHTTP.with(operatorPatience: .seconds(1)) { (http: RulesHTTP) async throws in
            let key = try await http.key(1, for: [.readCounts])
            var headers = HTTPFields()
            headers[.authorization] = "Bearer \(key)"
            let (client, asOperator) = (http.client, headers)
            let ask: @Sendable () async throws -> Int = {
                try await client.execute(uri: "/v1/operator/counts?app=test", method: .get, headers: asOperator) {
                    #expect($0.status == .ok || $0.headers[.retryAfter] == "2")
                    return $0.status.code
                }
            }
            // Each statement of this route waits for the lock.
            let waiting = try await http.pool.transaction { transaction in
                try await transaction.execute("LOCK TABLE rules.tally IN ACCESS EXCLUSIVE MODE")
                let waiting = (0..<RulesApp.operatorConnections).map { _ in Task(operation: ask) }
                try await eventually("operators wait") {
                    let count: Int = try await transaction.query(
                        "SELECT count(*) FROM pg_locks JOIN pg_database ON oid = database WHERE NOT granted AND datname = current_database()"
                    )
                    .single()
                    return count == RulesApp.operatorConnections
                }
                #expect(try await ask() == 503)
                #expect(try await http.send(.get, "/v1/preferences").status == 200)
                #expect(try await http.fixture.handleEvent("e1") == [["1"]])
                #expect(try await http.unread() == 1)
                return waiting
            }
            for request in waiting { #expect(try await request.value == 200) }
        }
    }

    @Test func `an explanation of many users comes in pages, or for one user`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let key = try await http.key(1, for: [.readEvents])
            let users = (100..<223).map(String.init)
            _ = try await http.fixture.handleEvent("e1", users: "[\(users.joined(separator: ","))]")
            func explained(_ query: String) async throws -> (users: [String], next: String?) {
                let answer = try await http.send(.get, "\(Self.events)/e1?app=test\(query)", user: key)
                #expect(answer.status == 200)
                let event = answer.body["events"]?.array?.first
                return (event?["stories"]?.array?.compactMap { $0["user"]?.string } ?? [], event?["next"]?.string)
            }
            let first = try await explained("")
            #expect(first.users == Array(users.prefix(OperatorRoutes.usualPage)))
            let rest = try await explained("&limit=200&after=\(try #require(first.next))")
            #expect(first.users + rest.users == users && rest.next == nil)
            #expect(try await explained("&user=150") == (["150"], nil))
            #expect(try await explained("&user=none") == ([], nil))
        }
    }

    @Test func `a key allows its operations in its app, and nothing else`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            _ = try await http.fixture.handleEvent("e1")
            let (one, every) = (
                try await http.key(1, for: [.readEvents]), try await http.key(2, for: [.readEvents], app: nil)
            )
            let (elsewhere, counting) = (
                try await http.key(3, for: [.readEvents], app: AppID(rawValue: "other")!),
                try await http.key(4, for: [.readCounts])
            )
            let (here, anywhere) = ("\(Self.events)/e1?app=test", "\(Self.events)/e1")
            for (uri, key, status) in [
                (here, one, 200), (here, every, 200), (here, elsewhere, 403), (here, counting, 403),
                (anywhere, one, 403), (anywhere, every, 200), (here, nil, 401), (here, "x", 401),
                // A user's bearer token is not an API key, and a key is not valid for user routes.
                (here, "1", 401), ("/v1/inbox", one, 401),
            ] as [(String, String?, Int)] {
                let answer = try await http.send(.get, uri, user: key)
                #expect(answer.status == status, "\(uri)")
                // These are keys of rules; pushctl uses the registry's keys by default.
                let isOfKeys = status >= 400 && uri != "/v1/inbox"
                let detail = answer.body["detail"]?.string ?? ""
                #expect(isOfKeys == detail.contains("pushctl keys"), "\(uri): \(detail)")
                #expect(isOfKeys == detail.contains(" --service rules"), "\(uri): \(detail)")
            }
        }
    }

    @Test func `invalid queries get 400, and unknown events 404`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let key = try await http.key(1, for: [.readEvents])
            _ = try await http.fixture.handleEvent("e1")
            for (rest, status) in [
                ("e2?app=test", 404), ("e1?app=test&after=\(UUID())", 404), ("e1?app=Not", 400),
                ("e1?app=test&limit=0", 400), ("e1?app=test&limit=201", 400), ("e1?app=test&limit=x", 400),
                ("e1?app=test&after=x", 400), ("e1?app=test&user=", 400), ("a%00b?app=test", 400),
                ("\(String(repeating: "a", count: 256))?app=test", 400), ("%ff?app=test", 400),
            ] {
                #expect(try await http.send(.get, "\(Self.events)/\(rest)", user: key).status == status, "\(rest)")
            }
        }
    }

    @Test func `statistics of each rule are returned for a window of hours`() async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let key = try await http.key(1, for: [.readCounts])
            let counts = "/v1/operator/counts?app=test"
            let none = try await http.send(.get, counts, user: key)
            #expect(none.status == 200 && none.body["counted_at"] == JSONValue.null && none.body["counts"] == [])
            _ = try await http.fixture.handleEvent("e1", users: "[1,2]")
            try await StatsStore(pool: http.pool).count(now: http.clock.now)
            http.clock.advance(.seconds(1800))
            let answer = try await http.send(.get, counts, user: key).body
            #expect(answer["from"] == "2026-01-09T12:00:00.000Z" && answer["until"] == "2026-01-10T13:00:00.000Z")
            #expect(answer["counted_at"] == "2026-01-10T12:00:00.000Z")
            let row = try #require(answer["counts"]?.array?.first)
            #expect(row["rule"] == "only" && row["sent"] == 2 && row["unsent"] == 0)
            for (window, rows) in [
                ("&from=2026-01-10T12:29:59Z", 1), ("&from=2026-01-10T13:00:00%2B01:00", 1),
                ("&from=2026-01-01T00:00:00Z&until=2026-01-10T12:00:00Z", 0), ("&until=2026-01-10T12:00:01Z", 1),
            ] {
                let response = try await http.send(.get, counts + window, user: key)
                #expect(response.status == 200 && response.body["counts"]?.array?.count == rows, "\(window)")
            }
            for wrong in [
                "&from=2026-01-10T13:00:00Z", "&from=x", "&until=", "&from=2024-01-01T00:00:00Z",
                "&from=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z",
            ] {
                #expect(try await http.send(.get, counts + wrong, user: key).status == 400, "\(wrong)")
            }
            #expect(try await http.send(.get, "/v1/operator/counts", user: key).status == 403)
            let reader = try await http.key(2, for: [.readEvents], app: nil)
            #expect(try await http.send(.get, "/v1/operator/counts", user: reader).status == 403)
        }
    }
}
