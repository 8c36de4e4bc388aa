import DecisionLog
import Foundation
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import EventsAPI

/// `POST /v1/events?wait=…`, with the grants of the service's role.
@Suite(.enabled(if: TestDatabase.isAvailable, "needs a database"), .timeLimit(.minutes(3))) struct DecisionWaitTests {
    /// Stores an event with one decision about a user.
    private static func decide(_ http: EventsHTTP, _ id: String, answer: String, source: String = "/up") async throws
        -> UUID
    {
        let (key, notification) = (UUID(), UUID())
        try await http.owner.execute(
            """
            INSERT INTO rules.event (key, app, source, id, type, rule_set, arrived_at)
            VALUES (\(key), 'demo', \(source), \(id), 'thing.happened', \(key), now())
            """)
        try await http.owner.execute(
            """
            INSERT INTO rules.decision (notification, step, event, rule, user_id, decided_at, answer, reason)
            VALUES (\(notification), 0, \(key), 'only', '1', now(), \(answer), 'wanted')
            """)
        return notification
    }

    private static func reportOutcome(_ http: EventsHTTP, _ notification: UUID) async throws {
        try await http.owner.execute(
            """
            INSERT INTO rules.outcome (notification, device, disposition, origin, reason, at)
            VALUES (\(notification), \(UUID()), 'accepted', 'apns', NULL, now())
            """)
    }

    @Test func `the answer has decisions and outcomes as soon as they are complete`() async throws {
        try await EventsHTTP.with { http async throws in
            let key = try await http.key()
            let waiting = Task { try await http.post(event("w-1"), key: key, uri: "/v1/events?wait=30s") }
            try await eventually("the event") { try http.received().count == 1 }
            // Another source's event with the same id.
            _ = try await Self.decide(http, "w-1", answer: "drop", source: "/other")
            let notification = try await Self.decide(http, "w-1", answer: "push")
            try await Self.reportOutcome(http, notification)
            let answer = try await waiting.value
            #expect(answer.status == 200 && answer.body["complete"] == true)
            let found = try #require(answer.body["events"]?.array?.first)
            #expect(found["status"] == "accepted" && found["decided"] == true)
            #expect(answer.body["incomplete"] == nil)
            let stories = try #require(found["notifications"]?.array)
            #expect(stories.map { $0["notification"]?.string } == [notification.uuidString.lowercased()])
            #expect(stories.first?["outcomes"]?.array?.first?["disposition"] == "accepted")
        }
    }

    @Test func `after the time the answer has the part that is known`() async throws {
        try await EventsHTTP.with { http async throws in
            let key = try await http.key()
            let nothing = try await http.post(event("w-1"), key: key, uri: "/v1/events?wait=0s")
            #expect(nothing.status == 200 && nothing.body["complete"] == false)
            #expect(nothing.body["events"]?.array?.first?["decided"] == false)
            #expect(nothing.body["incomplete"] == "undecided")
            _ = try await Self.decide(http, "w-1", answer: "push")
            let part = try await http.post(event("w-1"), key: key, uri: "/v1/events?wait=50ms")
            #expect(part.status == 200 && part.body["complete"] == false && part.body["incomplete"] == "outcomes")
            #expect(part.body["events"]?.array?.first?["notifications"]?.array?.count == 1)
            _ = try await Self.decide(http, "w-2", answer: "inbox")
            let inbox = try await http.post(event("w-2"), key: key, uri: "/v1/events?wait=20s")
            #expect(inbox.body["complete"] == true)
        }
    }

    @Test func `the answer contains the outcomes of devices that answer after the first`() async throws {
        try await EventsHTTP.with(settlingTime: .seconds(5)) { http async throws in
            let key = try await http.key()
            let notification = try await Self.decide(http, "w-1", answer: "push")
            try await Self.reportOutcome(http, notification)
            let now = try await http.post(event("w-1"), key: key, uri: "/v1/events?wait=0s")
            #expect(now.body["complete"] == false && now.body["incomplete"] == "settling")
            // The second device answers while the request waits.
            let waiting = Task { try await http.post(event("w-1"), key: key, uri: "/v1/events?wait=30s") }
            try await eventually("the event") { try http.received().count == 2 }
            try await Self.reportOutcome(http, notification)
            let answer = try await waiting.value
            #expect(answer.body["complete"] == true)
            let outcomes = answer.body["events"]?.array?.first?["notifications"]?.array?.first?["outcomes"]?.array
            #expect(outcomes?.count == 2)
        }
    }

    @Test func `an event with more notifications than a page becomes complete`() async throws {
        try await EventsHTTP.with { http async throws in
            let key = try await http.key()
            _ = try await Self.decide(http, "many", answer: "push")
            try await http.owner.execute(
                """
                INSERT INTO rules.decision (notification, step, event, rule, user_id, decided_at, answer, reason)
                SELECT gen_random_uuid(), 0, key, 'only', 'u' || number, now(), 'push', 'wanted'
                FROM rules.event, generate_series(1, 300) AS number WHERE id = 'many'
                """)
            let open = try await http.post(event("many"), key: key, uri: "/v1/events?wait=0s")
            #expect(open.body["complete"] == false && open.body["incomplete"] == "outcomes")
            try await http.owner.execute(
                """
                INSERT INTO rules.outcome (notification, device, disposition, origin, reason, at)
                SELECT notification, gen_random_uuid(), 'accepted', 'apns', NULL, now() FROM rules.decision
                """)
            let answer = try await http.post(event("many"), key: key, uri: "/v1/events?wait=30s")
            #expect(answer.body["complete"] == true)
            #expect(answer.body["events"]?.array?.first?["notifications"]?.array?.count == 200)
        }
    }

    @Test func `only a key for events:read shows what users read and opened`() async throws {
        try await EventsHTTP.with { http async throws in
            let notification = try await Self.decide(http, "r-1", answer: "inbox")
            try await http.owner.execute(
                """
                INSERT INTO rules.inbox (notification, app, user_id, saying, at, read_at)
                VALUES (\(notification), 'demo', '1', \(notification), now(), now())
                """)
            try await http.owner.execute("INSERT INTO rules.receipt VALUES (\(notification), 'opened', now())")
            func members(_ key: String) async throws -> Set<String> {
                let answer = try await http.post(event("r-1"), key: key, uri: "/v1/events?wait=20s")
                let found = answer.body["events"]?.array?.first?["notifications"]?.array?.first?.object
                return Set(try #require(found).keys)
            }
            let shown: Set = ["notification", "user", "rule", "decisions", "outcomes", "waits_until"]
            #expect(try await members(try await http.key(1)) == shown)
            #expect(try await members(try await EventsHTTP.token()) == shown)
            let reader = try await http.key(2, for: [.publishEvents, .readEvents])
            #expect(try await members(reader) == shown.union(["inbox", "receipts"]))
        }
    }

    @Test func `an id that many sources use is found by its source`() async throws {
        try await EventsHTTP.with { http async throws in
            let key = try await http.key()
            _ = try await Self.decide(http, "same", answer: "drop")
            for number in 1...20 { _ = try await Self.decide(http, "same", answer: "drop", source: "/\(number)") }
            let answer = try await http.post(event("same"), key: key, uri: "/v1/events?wait=0s")
            #expect(answer.body["complete"] == true)
        }
    }

    @Test func `a batch that waits is small, and keeps its refusals`() async throws {
        try await EventsHTTP.with { http async throws in
            let key = try await http.key()
            let type = ContentMode.batchContentType
            _ = try await Self.decide(http, "1", answer: "drop")
            let mixed = try await http.post("[{},\(event("1"))]", type: type, key: key, uri: "/v1/events?wait=20s")
            #expect(mixed.status == 207 && mixed.body["complete"] == true)
            #expect(mixed.body["events"]?.array?.map { $0["decided"] } == [nil, true])
            let many = (0...WaitTime.maximumEvents).map { event("m-\($0)") }.joined(separator: ",")
            let refused = try await http.post("[\(many)]", type: type, key: key, uri: "/v1/events?wait=1s")
            #expect(refused.status == 400)
            #expect(try await http.post(event("2"), key: key, uri: "/v1/events?wait=31s").status == 400)
            #expect(try http.received().map(\.id) == ["1"])
        }
    }

    @Test func `an unreadable decision log does not fail an accepted event`() async throws {
        try await EventsHTTP.with { http async throws in
            let key = try await http.key()
            try await http.owner.execute("ALTER TABLE rules.event RENAME TO elsewhere")
            let answer = try await http.post(event("1"), key: key, uri: "/v1/events?wait=5s")
            #expect(answer.status == 202 && answer.body["accepted"] == 1)
        }
    }

    @Test func `the service's database role has exactly the rights that it needs`() async throws {
        try await EventsHTTP.with { http async throws in
            let rights: [String] = try await http.owner.query(
                """
                SELECT array_agg(table_name || ' ' || column_name || ' ' || privilege_type)
                FROM information_schema.role_column_grants WHERE grantee = 'heliograph_events_api'
                    AND NOT (privilege_type = 'SELECT' AND table_name IN
                        ('event', 'decision', 'outcome', 'receipt', 'api_key', 'migration'))
                """
            ).single()
            let columns = [
                "inbox": "notification read_at", "held": "notification due_at leaving",
                "crowd": "event rule told decided due_at named circles", "member": "app circle user_id has_left",
            ]
            let expected = columns.flatMap { table, names in names.split(separator: " ").map { "\(table) \($0) SELECT" }
            }
            #expect(Set(rights) == Set(expected + ["api_key last_used_at UPDATE"]))
            let deletes: Int = try await http.owner.query(
                """
                SELECT count(*) FROM information_schema.role_table_grants
                WHERE grantee = 'heliograph_events_api' AND privilege_type <> 'SELECT'
                """
            ).single()
            #expect(deletes == 0)
        }
    }
}
