import Foundation
import PushProtocol
import Testing

@testable import EventsAPI

/// Events from requests, without HTTP.
@Suite struct EventReaderTests {
    private let reader = EventReader(app: EventsHTTP.app)

    private func structured(_ text: String, by reader: EventReader? = nil) throws -> IncomingEvent {
        try (reader ?? self.reader).structured(Array(text.utf8))
    }

    private func status(_ body: () throws -> Void) -> Int? {
        (#expect(throws: EventRefusal.self) { try body() })?.status
    }

    @Test func `a structured event is published as it came`() throws {
        let text = event(data: #"{"n": 1e18, "user":"1"}"#, extra: #","custom":"x""#)
        let found = try structured(text)
        #expect(found.body == Array(text.utf8) && found.routingKey == "demo.thing.happened")
        #expect(found.event.id == "e-1" && found.event.source == "/up" && found.event.app == EventsHTTP.app)
    }

    @Test func `binary mode gives the same event as structured mode`() throws {
        let data = #"{"n": 1e18, "text":"später"}"#
        let found = try reader.binary(
            [
                ("Content-Type", "application/json"), ("CE-SpecVersion", "1.0"), ("ce-id", "e%201%2F%C3%A4"),
                ("ce-source", #""/up\"x""#), ("ce-type", "thing.happened"), ("ce-time", "2026-01-01T00:00:00Z"),
                ("ce-subject", "s"), ("ce-expirytime", "2030-01-01T00:00:00Z"), ("ce-custom", "a%25b"),
            ], body: Array(data.utf8))
        let equal = try CloudEvents.decode(
            routingKey: "demo.thing.happened", contentType: "application/json",
            headers: [
                "cloudEvents_specversion": "1.0", "cloudEvents_id": "e 1/ä", "cloudEvents_source": #"/up"x"#,
                "cloudEvents_type": "thing.happened", "cloudEvents_time": "2026-01-01T00:00:00Z",
                "cloudEvents_subject": "s", "cloudEvents_expirytime": "2030-01-01T00:00:00Z",
            ], body: Array(data.utf8))
        #expect(found.event == equal)
        let published = String(decoding: found.body, as: UTF8.self)
        #expect(published.contains(data) && published.contains(#""custom":"a%b""#))
        let empty = try reader.binary(
            [("ce-specversion", "1.0"), ("ce-id", "e"), ("ce-source", "/up"), ("ce-type", "t")], body: [])
        #expect(empty.event.data == .object([:]))
    }

    @Test func `the body of binary mode cannot add attributes`() throws {
        let headers = [("ce-specversion", "1.0"), ("ce-id", "e"), ("ce-source", "/up"), ("ce-type", "t")]
        for body in [#"1,"type":"other""#, #"{}}"#, "", "{} {}"] where !body.isEmpty {
            #expect(status { _ = try reader.binary(headers, body: Array(body.utf8)) } == 400, "\(body)")
        }
    }

    @Test(arguments: [
        ("ce-id", "%zz"), ("ce-id", "%FF"), ("ce-data", "x"), ("ce-datacontenttype", "x"), ("ce-a_b", "x"),
        ("ce-", "x"), ("CE-Id", "twice"), ("ce-time", "today"), ("ce-subject", "%07"),
    ])
    func `an invalid attribute in a header is refused`(name: String, value: String) {
        let headers = [("ce-specversion", "1.0"), ("ce-source", "/up"), ("ce-type", "t")]
        let id = name == "ce-id" ? [] : [("ce-id", "e")]
        #expect(status { _ = try reader.binary(headers + id + [(name, value)], body: []) } == 400)
    }

    @Test(arguments: [
        "", "null", "[]", "{", #"{"specversion":"1.0"}"#, event(nil), event(""), event(type: ""),
        event().replacing("1.0", with: "0.3"), event(extra: #","data_base64":"eA==""#), event(extra: #","time":"x""#),
        event(extra: #","subject":7"#), event("a\u{7}b"), event(String(repeating: "x", count: 256)),
        event(data: String(repeating: "[", count: 25) + String(repeating: "]", count: 25)),
        event(type: String(repeating: "t", count: 251)), event(type: "heliograph.notification.reported"),
    ])
    func `an event that rules would dead-letter is refused`(text: String) {
        #expect(status { _ = try structured(text) } == 400)
    }

    @Test func `the longest event is accepted, and one byte more is too large`() throws {
        let rest = event(data: #""""#).utf8.count
        let text = String(repeating: "a", count: WireCoding.maximumBodySize - rest)
        #expect(try structured(event(data: "\"\(text)\"")).body.count == WireCoding.maximumBodySize)
        #expect(status { _ = try structured(event(data: "\"\(text)a\"")) } == 413)
        let headers = [("ce-specversion", "1.0"), ("ce-id", "e"), ("ce-source", "/up"), ("ce-type", "t")]
        #expect(status { _ = try reader.binary(headers, body: Array("\"\(text)aaaa\"".utf8)) } == 413)
        #expect(try structured(event(type: String(repeating: "t", count: 250))).routingKey.utf8.count == 255)
    }

    @Test func `a request for a notification needs its own operation`() throws {
        let text = event(
            type: ReservedType.notificationRequest, data: #"{"users":["1"],"content":{"body":"B"}}"#)
        #expect(status { _ = try structured(text) } == 403)
        var allowed = reader
        allowed.mayRequestNotifications = true
        #expect(try structured(text, by: allowed).event.type == ReservedType.notificationRequest)
        #expect(status { _ = try structured(event(type: "heliograph.x"), by: allowed) } == 400)
    }

    @Test func `an Idempotency-Key gives an event without an id the same id each time`() throws {
        var keyed = reader
        keyed.key = try IdempotencyKey("order-1")
        let first = try structured(event(nil, data: #"{"a":[1,2.5,"x"]}"#), by: keyed)
        #expect(try structured(event(nil, data: #"{"a":[1,2.5,"x"]}"#), by: keyed) == first)
        #expect(UUID(uuidString: first.event.id) != nil && first.event.data["a"] == [1, 2.5, "x"])
        #expect(
            try CloudEvents.decode(
                routingKey: "demo", contentType: nil, headers: [:], body: first.body) == first.event)
        let null = try structured(event(nil, data: #"{"a":[1,2.5,"x"]}"#, extra: #","id":null"#), by: keyed)
        #expect(null.event.id == first.event.id)
        var others = [first.event.id]
        keyed.key = try IdempotencyKey("order-2")
        others.append(try structured(event(nil), by: keyed).event.id)
        let otherApp = EventReader(app: EventsHTTP.other, key: try IdempotencyKey("order-1"))
        others.append(try structured(event(nil), by: otherApp).event.id)
        others.append(try structured(event(nil), by: otherApp).event.id)
        others += try keyed.batch(Array("[\(event(nil)),\(event(nil))]".utf8)).map { try $0.get().event.id }
        // A single event, and an equal one that is the first of a batch.
        #expect(Set(others).count == 4)
        #expect(try structured(event("own"), by: keyed).event.id == "own")
    }

    @Test func `another event under a used Idempotency-Key is another event`() throws {
        var keyed = reader
        keyed.key = try IdempotencyKey("order-1")
        let (a, b) = (event(nil, data: #"{"a":1}"#), event(nil, data: #"{"a":2}"#))
        let ids = try keyed.batch(Array("[\(a),[],\(b)]".utf8)).compactMap { try? $0.get().event.id }
        #expect(ids.count == 2)
        // Only the second event is sent again, as after a partly accepted batch.
        #expect(try keyed.batch(Array("[\(b)]".utf8)).map { try $0.get().event.id } == [ids[1]])
        #expect(try structured(a, by: keyed).event.id == ids[0])
    }

    @Test(arguments: ["", "with space", "ümlaut", String(repeating: "k", count: 256)])
    func `an invalid Idempotency-Key is refused`(text: String) {
        #expect(status { _ = try IdempotencyKey(text) } == 400)
    }

    @Test func `a valid traceparent of the request goes to an event without its own`() throws {
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        let traced = EventReader(app: EventsHTTP.app, traceparent: trace)
        #expect(try structured(event(), by: traced).traceparent == trace)
        #expect(try structured(event(extra: #","traceparent":"own""#), by: traced).traceparent == nil)
        #expect(try structured(event(), by: EventReader(app: EventsHTTP.app, traceparent: "x")).traceparent == nil)
    }

    @Test func `each element of a batch has its own result`() throws {
        let deep = String(repeating: "[", count: 40) + String(repeating: "]", count: 40)
        let results = try reader.batch(
            Array("[\(event("1")),{},nonsense,\(event("2", data: deep)),\(event("3"))]".utf8))
        #expect(results.map { try? $0.get().event.id } == ["1", nil, nil, nil, "3"])
        #expect(try reader.batch(Array("[]".utf8)).isEmpty)
        let many = "[" + Array(repeating: "0", count: EventReader.maximumBatch + 1).joined(separator: ",") + "]"
        #expect(status { _ = try reader.batch(Array(many.utf8)) } == 413)
    }

    @Test func `the content type and the headers select the mode`() throws {
        #expect(try ContentMode(contentType: "application/cloudevents+json", hasAttributes: true) == .structured)
        #expect(
            try ContentMode(contentType: "Application/CloudEvents+JSON ; charset=UTF-8", hasAttributes: false)
                == .structured)
        #expect(try ContentMode(contentType: "application/cloudevents-batch+json", hasAttributes: false) == .batch)
        for type in ["application/json", "application/json; charset=utf-8", "application/x+json", nil] {
            #expect(try ContentMode(contentType: type, hasAttributes: true) == .binary)
        }
        for type in [
            "application/json", nil, "application/cloudevents+avro", "application/cloudevents", "text/plain",
            "application/cloudevents+json; charset=utf-16",
        ] {
            #expect(status { _ = try ContentMode(contentType: type, hasAttributes: false) } == 415, "\(type ?? "")")
        }
        #expect(status { _ = try ContentMode(contentType: "text/plain", hasAttributes: true) } == 415)
    }

    @Test func `a wait is a time of up to 30 s`() throws {
        for (text, time) in [
            ("5s", Duration.seconds(5)), ("0", .zero), ("30", .seconds(30)), ("250ms", .milliseconds(250)),
        ] {
            #expect(try WaitTime.parse(text) == time)
        }
        for text in ["", "s", "31s", "30001ms", "-1s", "1m", "5 s", "999999999999999999999s", "٣s", "1.5s"] {
            #expect(status { _ = try WaitTime.parse(text) } == 400, "\(text)")
        }
    }
}
