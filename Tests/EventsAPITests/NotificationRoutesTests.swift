import AMQP
import Foundation
import HTTPAuth
import Messaging
import Postgres
import PushProtocol
import Synchronization
import Testing
import TestSupport

@testable import EventsAPI

/// `POST /v1/notifications` with a real database and a bus in memory.
@Suite(.enabled(if: TestDatabase.isAvailable, "needs a database"), .timeLimit(.minutes(4)))
struct NotificationRoutesTests {
    static let body = #"{"id": "n-1", "users": ["1"], "content": {"body": "{{b}}"}, "type": "chat"}"#

    @Test func `a notification is published as an event with its id, source and data`() async throws {
        try await EventsHTTP.with { http async throws in
            let key = try await http.key(for: [.sendNotifications])
            let answer = try await http.notify(Self.body, key: key)
            #expect(answer.status == 202)
            #expect(
                answer.body == [
                    "accepted": 1,
                    "events": [
                        [
                            "index": 0, "source": .string(NotificationReader.source), "id": "n-1",
                            "type": .string(DirectNotification.eventType), "status": "accepted",
                        ]
                    ],
                ])
            let event = try #require(try http.received().first)
            #expect(event.id == "n-1" && event.app == EventsHTTP.app && event.time != nil)
            #expect(event.data == ["users": ["1"], "content": ["body": "{{b}}"], "type": "chat"])
            let keys = http.bus.messages(in: EventsHTTP.queue).map(\.routingKey)
            #expect(keys == ["demo.\(DirectNotification.eventType)"])
        }
    }

    @Test func `an id is the body's, or derived from the key, or random`() async throws {
        try await EventsHTTP.with { http async throws in
            let key = try await http.key(for: [.sendNotifications])
            let anonymous = #"{"users": ["1"], "content": {"body": "B"}}"#
            let header = ["Idempotency-Key": "k-1"]
            for _ in 0..<2 { #expect(try await http.notify(anonymous, key: key, header).status == 202) }
            for _ in 0..<2 { #expect(try await http.notify(anonymous, key: key).status == 202) }
            #expect(try await http.notify(Self.body, key: key, header).status == 202)
            let ids = try http.received().map(\.id)
            #expect(ids[0] == ids[1])
            #expect(Set(ids).count == 4 && ids[4] == "n-1")
        }
    }

    @Test func `the key needs the operation, and its app`() async throws {
        try await EventsHTTP.with { http async throws in
            let publisher = try await http.key(1, for: [.publishEvents])
            let sender = try await http.key(2, for: [.sendNotifications])
            #expect(try await http.notify(Self.body, key: nil).status == 401)
            #expect(try await http.notify(Self.body, key: publisher).status == 403)
            #expect(try await http.notify(Self.body, key: sender, ["Heliograph-App": "other"]).status == 403)
            #expect(try http.received().isEmpty)
        }
    }

    @Test func `a refused notification is not published, and the problem names the member`() async throws {
        try await EventsHTTP.with { http async throws in
            let key = try await http.key(for: [.sendNotifications, .publishEvents])
            let refused: KeyValuePairs<String, String> = [
                "[]": "expected a JSON object", "{": "not JSON", #"{"users": ["1"]}"#: "content is missing",
                #"{"users": ["1"], "content": {"body": "B"}, "lane": "fast"}"#: "lane is invalid: expected one of",
                #"{"users": ["1"], "content": {"body": "B"}, "s3cret": 1}"#: "unknown member",
                #"{"users": ["1"], "content": {"body": "B"}, "id": 7}"#: "id is invalid: expected a string",
                #"{"users": ["1"], "content": {"body": "B"}, "id": ""}"#: "id is invalid",
            ]
            for (body, problem) in refused {
                let answer = try await http.notify(body, key: key)
                let detail = answer.body["detail"]?.string ?? ""
                #expect(answer.status == 400 && detail.contains(problem), "\(body): \(detail)")
                #expect(!detail.contains("s3cret"))
            }
            // The same data as an event is refused at the same place.
            let text = event(type: DirectNotification.eventType, data: #"{"users": ["1"]}"#)
            #expect(try await http.post(text, key: key).status == 400)
            #expect(try http.received().isEmpty)
        }
    }

    @Test func `overrides that a sender would reject are refused at both addresses`() async throws {
        try await EventsHTTP.with { http async throws in
            let key = try await http.key(for: [.sendNotifications, .publishEvents])
            let large = String(repeating: "a", count: 5000)
            let refused: KeyValuePairs<String, String> = [
                #"{"body": "B", "apns": {"headers": {"apns-push-type": "no-such-type"}}}"#: "content.apns",
                #"{"body": "B", "apns": {"headers": {"apns-priority": "7"}}}"#: "content.apns",
                #"{"body": "B", "apns": {"payload": {"note": "\#(large)"}}}"#: "content.apns",
                #"{"body": "B", "fcm": {"message": {"no_such_field": 1}}}"#: "content.fcm",
            ]
            for (content, member) in refused {
                let data = #"{"users": ["1"], "content": \#(content)}"#
                let direct = try await http.notify(data, key: key)
                let asEvent = try await http.post(event(type: DirectNotification.eventType, data: data), key: key)
                for answer in [direct, asEvent] {
                    #expect(
                        answer.status == 400 && answer.body["detail"]?.string?.contains(member) == true,
                        "\(content.prefix(80))")
                }
            }
            #expect(try http.received().isEmpty)
            let accepted = #"""
                {"users": ["1"], "content": {"body": "B", "apns": {"headers": {"apns-priority": "5"},
                    "payload": {"aps": {"relevance-score": 0.5}}}, "fcm": {"message": {"android": {"ttl": "60s"}}}}}
                """#
            #expect(try await http.notify(accepted, key: key).status == 202)
        }
    }
}

extension EventsHTTP {
    /// Posts to `/v1/notifications`.
    func notify(
        _ body: String, type: String = "application/json", key: String?, _ headers: [String: String] = [:],
        uri query: String = ""
    ) async throws -> Answer {
        try await post(body, type: type, key: key, headers, uri: "/v1/notifications\(query)")
    }
}
