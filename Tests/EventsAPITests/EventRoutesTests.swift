import AMQP
import Foundation
import HTTPAuth
import HTTPTypes
import Hummingbird
import Messaging
import NIOCore
import Postgres
import PushProtocol
import Synchronization
import Testing
import TestSupport

@testable import EventsAPI

/// `POST /v1/events` with a real database and a bus in memory.
@Suite(.enabled(if: TestDatabase.isAvailable, "needs a database"), .timeLimit(.minutes(4))) struct EventRoutesTests {
    static let binary = ["ce-specversion": "1.0", "ce-id": "b-1", "ce-source": "/up", "ce-type": "thing.happened"]

    @Test func `the three modes publish the same event`() async throws {
        try await EventsHTTP.with { http async throws in
            let key = try await http.key()
            let data = #"{"user":"1"}"#
            let answers = [
                try await http.post(event("b-1", data: data), key: key),
                try await http.post(data, type: "application/json", key: key, Self.binary),
                try await http.post("[\(event("b-1", data: data))]", type: ContentMode.batchContentType, key: key),
            ]
            for answer in answers {
                #expect(answer.status == 202)
                #expect(
                    answer.body == [
                        "accepted": 1,
                        "events": [
                            ["index": 0, "source": "/up", "id": "b-1", "type": "thing.happened", "status": "accepted"]
                        ],
                    ])
            }
            let received = try http.received()
            #expect(received.count == 3 && Set(received).count == 1)
            for message in http.bus.messages(in: EventsHTTP.queue) {
                #expect(message.routingKey == "demo.thing.happened" && message.properties.persistent)
                #expect(message.properties.messageID != "b-1" && message.properties.appID == "events-api")
            }
        }
    }

    @Test func `a batch with bad events publishes the good ones, with a result for each`() async throws {
        try await EventsHTTP.with { http async throws in
            let key = try await http.key()
            let large = event("large", data: "\"\(String(repeating: "a", count: WireCoding.maximumBodySize))\"")
            let answer = try await http.post(
                "[\(event("1")),{},\(event("2", type: "heliograph.x")),\(large),\(event("3"))]",
                type: ContentMode.batchContentType, key: key)
            #expect(answer.status == 207 && answer.body["accepted"] == 2)
            let events = try #require(answer.body["events"]?.array)
            #expect(events.map { $0["index"]?.int } == [0, 1, 2, 3, 4])
            #expect(events.map { $0["status"] } == ["accepted", "refused", "refused", "refused", "accepted"])
            #expect(events.map { $0["problem"]?["status"]?.int } == [nil, 400, 400, 413, nil])
            #expect(try http.received().map(\.id) == ["1", "3"])
            #expect(
                events[1]["problem"]?["title"] == "Bad Request" && events[3]["problem"]?["title"] == "Content Too Large"
            )
            let none = try await http.post("[{},1]", type: ContentMode.batchContentType, key: key)
            #expect(none.status == 400 && none.body["accepted"] == 0 && none.body["events"]?.array?.count == 2)
            let empty = try await http.post("[]", type: ContentMode.batchContentType, key: key)
            #expect(empty.status == 202 && empty.body == ["accepted": 0, "events": []])
        }
    }

    @Test func `the key determines the app, and a foreign app is refused`() async throws {
        try await EventsHTTP.with { http async throws in
            let (one, every) = (try await http.key(1), try await http.key(2, app: nil))
            #expect(try await http.post(event("1"), key: one, ["Heliograph-App": "demo"]).status == 202)
            #expect(try await http.post(event("2"), key: one, ["Heliograph-App": "other"]).status == 403)
            #expect(try await http.post(event("3"), key: one, uri: "/v1/events?app=other").status == 403)
            #expect(try await http.post(event("4"), key: every).status == 400)
            #expect(try await http.post(event("5"), key: every, ["Heliograph-App": "other"]).status == 202)
            #expect(try await http.post(event("6"), key: every, uri: "/v1/events?app=demo").status == 202)
            #expect(try await http.post(event("7"), key: every, uri: "/v1/events?app=unknown").status == 404)
            #expect(
                try await http.post(event("8"), key: every, ["Heliograph-App": "demo"], uri: "/v1/events?app=other")
                    .status
                    == 400)
            #expect(try http.received().map { "\($0.app) \($0.id)" } == ["demo 1", "other 5", "demo 6"])
        }
    }

    @Test func `a missing, unknown, expired or revoked key, and a key without the operation, publish nothing`()
        async throws
    {
        try await EventsHTTP.with { http async throws in
            let good = try await http.key(1)
            let expired = try await http.key(2, expiresIn: -1)
            let reader = try await http.key(3, for: [.readEvents, .sendNotifications])
            let wrong = String(good.dropLast()) + (good.hasSuffix("0") ? "1" : "0")
            for key in [nil, "x", wrong, expired] {
                let answer = try await http.post(event(), key: key)
                #expect(answer.status == 401 && answer.headers[.wwwAuthenticate]?.hasPrefix("Bearer") == true)
            }
            #expect(try await http.post(event(), key: reader).status == 403)
            #expect(try await http.post(event(), key: good).status == 202)
            try await http.owner.execute("UPDATE rules.api_key SET revoked_at = now()")
            #expect(try await http.post(event(), key: good).status == 401)
            #expect(try http.received().count == 1)
        }
    }

    @Test func `a request for a notification needs the operation notifications:send too`() async throws {
        try await EventsHTTP.with { http async throws in
            let text = event(
                type: ReservedType.notificationRequest, data: #"{"users":["1"],"content":{"body":"B"}}"#)
            let both = try await http.key(2, for: [.publishEvents, .sendNotifications])
            #expect(try await http.post(text, key: try await http.key(1)).status == 403)
            #expect(try await http.post(text, key: both).status == 202)
        }
    }

    @Test func `events of a batch count for the key's limit`() async throws {
        // The batch takes more than the key has. A token returns every 30 s.
        try await EventsHTTP.with(requests: 2) { http async throws in
            let key = try await http.key()
            let batch = "[\(event("1")),\(event("2")),\(event("3"))]"
            #expect(try await http.post(batch, type: ContentMode.batchContentType, key: key).status == 202)
            let answer = try await http.post(event("4"), key: key)
            #expect(answer.status == 429 && answer.headers[.retryAfter] != nil)
        }
    }

    @Test func `bodies above the limits are refused`() async throws {
        try await EventsHTTP.with(batchLimit: 1000) { http async throws in
            let key = try await http.key()
            let long = String(repeating: "a", count: WireCoding.maximumBodySize + 1)
            #expect(try await http.post(event(data: "\"\(long)\""), key: key).status == 413)
            #expect(try await http.post("\"\(long)\"", type: "application/json", key: key, Self.binary).status == 413)
            let batch = "[\(event(data: "\"\(long.prefix(1000))\""))]"
            #expect(try await http.post(batch, type: ContentMode.batchContentType, key: key).status == 413)
            #expect(try http.received().isEmpty)
        }
    }

    @Test func `a body above its limit is not read to its end`() async throws {
        let chunks = Mutex(0)
        let endless = AsyncStream<ByteBuffer>(unfolding: {
            chunks.withLock { $0 += 1 }
            return ByteBuffer(repeating: UInt8(ascii: "a"), count: 1000)
        })
        let request = Request(
            head: HTTPRequest(method: .post, scheme: nil, authority: nil, path: "/v1/events"),
            body: RequestBody(asyncSequence: endless))
        let error = await #expect(throws: APIError.self) { try await request.bytes(upTo: 10_000) }
        #expect(error?.status == .contentTooLarge && chunks.withLock(\.self) <= 12)
    }

    @Test func `a full budget of bodies refuses further requests, which may be repeated`() async throws {
        let publishes = HeldPublishes()
        try await EventsHTTP.with(budget: 150, send: publishes.send) { http async throws in
            let key = try await http.key()
            let first = Task { try await http.post(event("1"), key: key).status }
            try await eventually("the first request publishes") { publishes.count == 1 }
            let refused = try await http.post(event("2"), key: key)
            publishes.release()
            #expect(refused.status == 503 && refused.headers[.retryAfter] == "1")
            #expect(try await first.value == 202)
            #expect(try await http.post(event("2"), key: key).status == 202)
        }
    }

    @Test func `one app uses at most half of the budget, and another app the rest`() async throws {
        let publishes = HeldPublishes()
        let size = event("1").utf8.count
        try await EventsHTTP.with(budget: 4 * size, send: publishes.send) { http async throws in
            let (key, every) = (try await http.key(1), try await http.key(2, app: nil))
            let held = (1...2).map { number in Task { try await http.post(event("\(number)"), key: key).status } }
            try await eventually("two requests publish") { publishes.count == 2 }
            // Also with another key for the same app.
            #expect(try await http.post(event("3"), key: key).status == 503)
            #expect(try await http.post(event("3"), key: every, ["Heliograph-App": "demo"]).status == 503)
            let other = Task { try await http.post(event("4"), key: every, ["Heliograph-App": "other"]).status }
            try await eventually("the other app publishes") { publishes.count == 3 }
            publishes.release()
            for task in held + [other] { #expect(try await task.value == 202) }
        }
    }

    @Test func `a request that waits for decisions uses no budget`() async throws {
        let size = event("1").utf8.count
        try await EventsHTTP.with(budget: size) { http async throws in
            let key = try await http.key()
            let waiting = Task { try await http.post(event("1"), key: key, uri: "/v1/events?wait=30s").status }
            try await eventually("the first event") { try http.received().count == 1 }
            try await eventually("the budget is free") { try await http.post(event("2"), key: key).status == 202 }
            waiting.cancel()
            _ = try? await waiting.value
        }
    }

    @Test(arguments: [
        (AMQPConfirmation.nacked, 503), (.returned(code: 312, text: "NO_ROUTE"), 503),
        (.returned(code: 404, text: "NOT_FOUND"), 503), (.returned(code: 406, text: "PRECONDITION_FAILED"), 413),
    ])
    func `an event that the broker does not take is not accepted`(confirmation: AMQPConfirmation, status: Int)
        async throws
    {
        try await EventsHTTP.with { http async throws in
            let key = try await http.key()
            http.bus.answer(publishesTo: .events, with: [confirmation])
            let answer = try await http.post(event(), key: key)
            #expect(answer.status == status && (answer.headers[.retryAfter] != nil) == (status == 503))
            // One event of a batch.
            http.bus.answer(publishesTo: .events, with: [.confirmed, confirmation, .confirmed])
            let batch = try await http.post(
                "[\(event("1")),\(event("2")),\(event("3"))]", type: ContentMode.batchContentType, key: key)
            #expect(batch.status == 207 && batch.body["accepted"] == 2)
            #expect(batch.body["events"]?.array?[1]["problem"]?["status"]?.int == Int64(status))
            #expect(try http.received().map(\.id) == ["1", "3"])
            http.bus.answer(publishesTo: .events, with: [confirmation])
            let all = try await http.post("[\(event("1"))]", type: ContentMode.batchContentType, key: key)
            #expect(all.status == status && (all.headers[.retryAfter] != nil) == (status == 503))
        }
    }

    @Test func `without a confirm in time the answer is 503, and unsent events are withdrawn`() async throws {
        let cancelled = Mutex(0)
        let send = unconfirmed { cancelled.withLock { $0 += 1 } }
        try await EventsHTTP.with(deadline: .milliseconds(50), send: send) { http async throws in
            let key = try await http.key()
            let answer = try await http.post(event(), key: key)
            #expect(answer.status == 503 && answer.headers[.retryAfter] == "5")
            #expect(cancelled.withLock { $0 } == 1)
            let batch = try await http.post("[\(event("1")),{}]", type: ContentMode.batchContentType, key: key)
            #expect(batch.status == 503 && batch.body["accepted"] == 0)
            #expect(batch.body["events"]?.array?.map { $0["problem"]?["status"]?.int } == [503, 400])
        }
    }

    @Test func `an Idempotency-Key makes a repeated request the same event`() async throws {
        try await EventsHTTP.with { http async throws in
            let key = try await http.key()
            for _ in 1...2 {
                let answer = try await http.post(event(nil), key: key, ["Idempotency-Key": "order-1"])
                #expect(answer.status == 202)
            }
            let ids = try http.received().map(\.id)
            #expect(ids.count == 2 && ids[0] == ids[1])
            #expect(try await http.post(event(nil), key: key).status == 400)
            #expect(try await http.post(event(nil), key: key, ["Idempotency-Key": "a b"]).status == 400)
        }
    }
}
