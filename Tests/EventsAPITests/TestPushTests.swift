import Foundation
import HTTPTypes
import HummingbirdTesting
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import EventsAPI

/// `POST /v1/test-pushes` with a real database and a bus in memory.
@Suite(.enabled(if: TestDatabase.isAvailable, "needs a database"), .timeLimit(.minutes(4))) struct TestPushTests {
    private static func post(_ http: EventsHTTP, _ token: String?, wait: String = "0s") async throws
        -> EventsHTTP.Answer
    {
        try await http.post("", type: nil, key: token, uri: "/v1/test-pushes?wait=\(wait)")
    }

    @Test func `the push goes to the caller and is not in the inbox`() async throws {
        try await EventsHTTP.with { http async throws in
            let answer = try await Self.post(http, try await BearerKeys.shared([:]))
            #expect(answer.status == 200 && answer.body["complete"] == false)
            #expect(answer.body["incomplete"] == "undecided" && answer.body["devices"] == [])
            #expect(answer.body["decision"] == .null && answer.body["reason"] == .null)
            let event = try #require(try http.received().first)
            #expect(event.id == answer.body["id"]?.string && event.source == TestPushRoutes.source)
            #expect(event.app == EventsHTTP.app && event.type == DirectNotification.eventType)
            let notification = try DirectNotification(event.data)
            #expect(notification == .test(to: UserID(rawValue: "456")!) && notification.isPushOnly)
        }
    }

    @Test func `the answer has the decision and each device's answer`() async throws {
        try await EventsHTTP.with { http async throws in
            let token = try await BearerKeys.shared([:])
            let waiting = Task { try await Self.post(http, token, wait: "30s") }
            try await eventually("the event") { try http.received().count == 1 }
            let id = try #require(try http.received().first?.id)
            let (key, notification, good, dead) = (UUID(), UUID(), UUID(), UUID())
            // In one statement, as rules store an event and its decisions in one transaction: an event without a
            // decision is complete.
            try await http.owner.execute(
                """
                WITH event AS (
                    INSERT INTO rules.event (key, app, source, id, type, rule_set, arrived_at)
                    VALUES (\(key), 'demo', '/v1/test-pushes', \(id), \(DirectNotification.eventType), \(key), now())
                ), decision AS (
                    INSERT INTO rules.decision (notification, step, event, rule, user_id, decided_at, answer, reason)
                    VALUES (\(notification), 0, \(key), 'direct', '456', now(), 'push', 'wanted')
                )
                INSERT INTO rules.outcome (notification, device, disposition, origin, reason, at) VALUES
                    (\(notification), \(good), 'accepted', 'apns', NULL, now()),
                    (\(notification), \(dead), 'unregistered', 'fcm', 'UNREGISTERED', now() + interval '1 second')
                """)
            let answer = try await waiting.value
            #expect(answer.status == 200 && answer.body["complete"] == true && answer.body["incomplete"] == nil)
            #expect(answer.body["decision"] == "push" && answer.body["reason"] == "wanted")
            let devices = try #require(answer.body["devices"]?.array)
            #expect(devices.map { $0["device"]?.string } == [good, dead].map { $0.uuidString.lowercased() })
            #expect(devices.map { $0["result"] } == ["accepted", "unregistered"])
            #expect(devices.map { $0["reason"] } == [.null, "UNREGISTERED"])
            #expect(devices.map { $0["provider"] } == ["apns", "fcm"])
        }
    }

    @Test func `a user has one test push in half a minute and five in an hour`() async throws {
        let clock = ManualClock()
        try await EventsHTTP.with(uptime: { clock.now }) { http async throws in
            let (one, two) = (try await BearerKeys.shared([:]), try await BearerKeys.shared(["sub": "457"]))
            #expect(try await Self.post(http, one).status == 200)
            let limited = try await Self.post(http, one)
            #expect(limited.status == 429 && limited.headers[.retryAfter] == "30")
            #expect(try await Self.post(http, two).status == 200)
            for _ in 2...TestPushLimits.maximumPerHour {
                clock.advance(by: TestPushLimits.pause)
                #expect(try await Self.post(http, one).status == 200)
            }
            clock.advance(by: TestPushLimits.pause)
            let later = try await Self.post(http, one)
            // A sixth is allowed when a fifth of an hour has passed since the first.
            #expect(later.status == 429 && later.headers[.retryAfter] == "570")
            #expect(try http.received().count == 6)
        }
    }

    @Test func `without a user's token nothing is published`() async throws {
        try await EventsHTTP.with { http async throws in
            let key = try await http.key(for: [.publishEvents, .sendNotifications])
            let now = Int64(BearerKeys.now.timeIntervalSince1970)
            #expect(try await Self.post(http, nil).status == 401)
            #expect(try await Self.post(http, key).status == 401)
            #expect(try await Self.post(http, try await BearerKeys.shared(["exp": .int(now - 60)])).status == 401)
            let publisher = try await Self.post(http, try await EventsHTTP.token(scope: "notifications:send"))
            #expect(publisher.status == 403)
            #expect(publisher.headers[.wwwAuthenticate] == #"Bearer error="insufficient_scope""#)
            #expect(try await Self.post(http, try await BearerKeys.shared([:]), wait: "31s").status == 400)
            #expect(try http.received().isEmpty)
        }
    }

    @Test func `a page of a listed origin may send it`() async throws {
        try await EventsHTTP.with { http async throws in
            let asking: HTTPFields = [
                .origin: "https://portal.example", .accessControlRequestMethod: "POST",
            ]
            try await http.client.execute(uri: "/v1/test-pushes", method: .options, headers: asking) { response in
                #expect(response.status == .noContent)
                #expect(response.headers[.accessControlAllowOrigin] == "https://portal.example")
            }
        }
    }
}
