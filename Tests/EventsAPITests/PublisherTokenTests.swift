import Foundation
import HTTPTypes
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import EventsAPI

/// Publishers with a bearer token. Users and publishers of the app share a secret, an issuer and an audience, so that only
/// the scope distinguishes their tokens.
@Suite(.enabled(if: TestDatabase.isAvailable, "needs a database"), .timeLimit(.minutes(4))) struct PublisherTokenTests {
    @Test func `a token publishes events of its app, and may name it`() async throws {
        try await EventsHTTP.with { http async throws in
            let token = try await EventsHTTP.token()
            #expect(try await http.post(event("1"), key: token).status == 202)
            #expect(try await http.post(event("2"), key: token, ["Heliograph-App": "demo"]).status == 202)
            #expect(try await http.post(event("3"), key: token, uri: "/v1/events?app=demo").status == 202)
            let listed = try await EventsHTTP.token(scope: ["openid", "events:publish"])
            #expect(try await http.post(event("4"), key: listed).status == 202)
            #expect(try http.received().map { "\($0.app) \($0.id)" } == ["demo 1", "demo 2", "demo 3", "demo 4"])
        }
    }

    @Test func `an expired, forged or foreign token, and a user's token, publish nothing`() async throws {
        try await EventsHTTP.with { http async throws in
            let now = Int64(BearerKeys.now.timeIntervalSince1970)
            let expired = try await EventsHTTP.token(["exp": .int(now - 60)])
            let forged = try await BearerKeys.shared(
                ["scope": "events:publish"], secret: String(repeating: "x", count: 40))
            for (token, status) in [
                (expired, 401), (forged, 401), ("a.b", 401), (try await EventsHTTP.token(["aud": "other"]), 401),
                (try await BearerKeys.shared([:]), 403), (try await EventsHTTP.token(scope: "openid"), 403),
                (try await EventsHTTP.token(scope: 7), 403), (try await EventsHTTP.token(["sub": .some(nil)]), 403),
                (try await EventsHTTP.token(["event_types": "thing."]), 403),
            ] {
                for uri in ["/v1/events", "/v1/notifications"] {
                    let type = uri.hasSuffix("events") ? CloudEvents.structuredContentType : "application/json"
                    let answer = try await http.post(event(), type: type, key: token, uri: uri)
                    #expect(answer.status == status && answer.headers[.wwwAuthenticate]?.contains("error=") == true)
                    #expect(answer.body["detail"]?.string?.contains("token") == true)
                }
            }
            #expect(try http.received().isEmpty)
        }
    }

    @Test func `a token for another app or another operation is refused with the scope that is missing`() async throws {
        try await EventsHTTP.with { http async throws in
            let token = try await EventsHTTP.token()
            for answer in [
                try await http.post(event(), key: token, ["Heliograph-App": "other"]),
                try await http.post(event(), key: token, uri: "/v1/events?app=unknown"),
            ] {
                #expect(answer.status == 403)
                #expect(answer.headers[.wwwAuthenticate] == #"Bearer error="insufficient_scope""#)
            }
            let notification = try await http.notify(NotificationRoutesTests.body, key: token)
            #expect(notification.status == 403)
            #expect(
                notification.headers[.wwwAuthenticate]
                    == #"Bearer error="insufficient_scope", scope="notifications:send""#)
            #expect(try http.received().isEmpty)
            let sender = try await EventsHTTP.token(scope: "notifications:send")
            #expect(try await http.notify(NotificationRoutesTests.body, key: sender).status == 202)
            #expect(try await http.post(event(), key: sender).status == 403)
        }
    }

    @Test func `event_types limits the types of events, and not those of notifications`() async throws {
        try await EventsHTTP.with { http async throws in
            let token = try await EventsHTTP.token(
                scope: "events:publish notifications:send", ["event_types": ["order.", "thing.happened"]])
            for (type, status) in [
                ("order.shipped", 202), ("thing.happened", 202), ("thing.happened.twice", 403), ("order", 403),
                ("orders.shipped", 403),
            ] {
                #expect(try await http.post(event(type, type: type), key: token).status == status, "\(type)")
            }
            let batch = try await http.post(
                "[\(event("a", type: "order.paid")),\(event("b", type: "user.left"))]",
                type: ContentMode.batchContentType, key: token)
            #expect(batch.status == 207)
            #expect(batch.body["events"]?.array?.map { $0["problem"]?["status"]?.int } == [nil, 403])
            #expect(try await http.notify(NotificationRoutesTests.body, key: token).status == 202)
            #expect(try http.received().map(\.id) == ["order.shipped", "thing.happened", "a", "n-1"])
        }
    }

    @Test func `requests of one publisher count for its limit, and not for that of another`() async throws {
        try await EventsHTTP.with(requests: 1) { http async throws in
            let token = try await EventsHTTP.token()
            #expect(try await http.post(event(), key: token).status == 202)
            #expect(try await http.post(event(), key: token).status == 429)
            let other = try await EventsHTTP.token(["sub": "billing"])
            #expect(try await http.post(event(), key: other).status == 202)
        }
    }
}
