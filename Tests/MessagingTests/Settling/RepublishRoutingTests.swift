import AMQP
import PushProtocol
import Testing

@testable import Messaging

@Suite struct RepublishRoutingTests {
    private let routing = RepublishRouting(service: "rules")

    /// A CloudEvent in binary mode, as an external publisher may send it.
    private let foreign = AMQPProperties(
        contentType: "application/octet-stream", contentEncoding: "gzip", messageID: "m-1", correlationID: "c-1",
        type: "x", appID: "upstream", expiration: "60000", userID: "upstream", persistent: false, timestamp: 1_700,
        headers: [
            "cloudEvents:id": "e-1", "cloudEvents:time": .timestamp(1_700), "nested": .table(["a": .array([.int(1)])]),
            "CC": .array(["feedback.outcomes"]), "x-death": .array([.table(["queue": "retry.5s"])]),
            "x-delivery-count": 3, "x-own": "kept",
        ])

    private func inbound(_ delivery: AMQPDelivery) -> Inbound {
        Inbound(delivery, queue: queue, now: Timestamp(milliseconds: 5))
    }

    @Test func `a retry copy keeps body, properties and headers, and adds its origin`() {
        let delivery = delivery(1, properties: foreign, body: "\u{0}\u{1}raw")
        let copy = routing.retryCopy(delivery, as: inbound(delivery), at: .seconds30, attempt: 2)
        #expect(copy.exchange == "retry.30s")
        #expect(copy.routingKey == "rules.events")
        #expect(copy.body == delivery.body)
        var expected = foreign
        expected.persistent = true
        expected.expiration = nil
        expected.userID = nil
        for name in ["CC", "x-death", "x-delivery-count"] { expected.headers[name] = nil }
        expected.headers.merge([
            HeaderName.attempt: 2, HeaderName.exchange: "events", HeaderName.routingKey: "demo.happened",
            HeaderName.firstSeen: 5,
        ]) { $1 }
        #expect(copy.properties == expected)
    }

    @Test func `a message back from a retry has its original exchange, routing key, attempt and time`() {
        let first = delivery(1)
        let copy = routing.retryCopy(first, as: inbound(first), at: .seconds5, attempt: 2)
        let back = delivery(2, exchange: "return", routingKey: copy.routingKey, properties: copy.properties)
        let inbound = Inbound(back, queue: queue, now: Timestamp(milliseconds: 99))
        #expect(inbound.exchange == "events")
        #expect(inbound.routingKey == "demo.happened")
        #expect(inbound.attempt == 2)
        #expect(inbound.firstSeen == Timestamp(milliseconds: 5))
        let again = routing.retryCopy(back, as: inbound, at: .seconds5, attempt: inbound.attempt + 1)
        #expect(again.properties.headers[HeaderName.attempt] == 3)
        #expect(again.properties.headers[HeaderName.routingKey] == "demo.happened")
    }

    @Test func `a publisher cannot forge the original routing key or the attempt`() {
        let forged = AMQPProperties(headers: [
            HeaderName.routingKey: "bank.happened", HeaderName.exchange: "devices", HeaderName.attempt: 7,
            HeaderName.firstSeen: 1,
        ])
        let inbound = inbound(delivery(1, properties: forged))
        #expect(inbound.routingKey == "demo.happened")
        #expect(inbound.exchange == "events")
        #expect(inbound.attempt == 1)
        #expect(inbound.firstSeen == Timestamp(milliseconds: 5))
    }

    @Test(arguments: [Int64.min, -1, 0, .max])
    func `an attempt header out of range is clamped`(attempt: Int64) {
        let properties = AMQPProperties(headers: [HeaderName.attempt: .int(attempt)])
        let inbound = inbound(delivery(1, exchange: "return", routingKey: queue.name, properties: properties))
        #expect(inbound.attempt >= 1)
        let disposition = ResolvedDisposition(
            .retry(after: .seconds(1), .test), attempt: inbound.attempt, maximumAttempts: 8)
        #expect(disposition.label == (attempt == .max ? "dead-letter" : "retry"))
    }

    @Test func `a dead letter has reason, queue, service, time and attempt in under 2 KiB`() throws {
        let delivery = delivery(1, properties: foreign)
        let reason = Reason(
            code: String(repeating: "c", count: 500), detail: String(repeating: "é🧨", count: 2000))
        let copy = routing.deadLetterCopy(
            delivery, as: inbound(delivery), because: reason, at: Timestamp(milliseconds: 42))
        #expect(copy.exchange == "dead")
        #expect(copy.routingKey == "rules.events")
        #expect(copy.properties.expiration == nil)
        let headers = copy.properties.headers
        #expect(headers[HeaderName.queue] == "rules.events")
        #expect(headers[HeaderName.service] == "rules")
        #expect(headers[HeaderName.failedAt] == 42)
        #expect(headers[HeaderName.attempt] == 1)
        let ours = headers.filter { $0.key.hasPrefix("heliograph-") }
        let size = ours.reduce(0) { $0 + $1.key.utf8.count + ($1.value.text?.utf8.count ?? 8) }
        #expect(size < 2048)
        let detail = try #require(headers[HeaderName.detail]?.text)
        #expect(reason.detail.hasPrefix(detail))
    }

    @Test func `a remainder replaces the body`() {
        let delivery = delivery(1, body: "all of it")
        let copy = routing.retryCopy(
            delivery, as: inbound(delivery), at: .hour1, attempt: 2, body: Array("the rest".utf8))
        #expect(copy.text == "the rest")
    }
}
