import Foundation
import PushProtocol
import Testing

@Suite struct CloudEventsTests {
    static func structured(
        _ body: String, routingKey: String = "family-portal.chat.message.created",
        contentType: String? = "application/cloudevents+json", headers: [String: String] = [:]
    ) throws(WireError) -> DomainEvent {
        try CloudEvents.decode(
            routingKey: routingKey, contentType: contentType, headers: headers, body: Array(body.utf8))
    }

    static let attributes = #""specversion":"1.0","id":"e1","source":"/chat","type":"chat.message.created""#

    @Test func `a structured event gets its app from the routing key`() throws {
        let event = try Self.structured(
            #"{\#(Self.attributes),"subject":"s","time":"2026-01-01T00:00:00Z","data":{"n":9007199254740993}}"#)
        #expect(event.app.rawValue == "family-portal")
        #expect(event.id == "e1" && event.source == "/chat" && event.type == "chat.message.created")
        #expect(event.time == Date(timeIntervalSince1970: 1_767_225_600))
        #expect(event.data["n"] == .int(9_007_199_254_740_993))
    }

    @Test(arguments: ["cloudEvents_", "cloudEvents:"])
    func `a binary event is read from its headers`(prefix: String) throws {
        let headers = [
            "\(prefix)specversion": "1.0", "\(prefix)id": "e1", "\(prefix)source": "/chat", "\(prefix)type": "t",
            "traceparent": "00-aa-bb-01",
        ]
        let event = try Self.structured(#"{"a":1}"#, contentType: "application/json", headers: headers)
        #expect(event.type == "t" && event.data == ["a": 1] && event.traceparent == "00-aa-bb-01")
    }

    @Test(arguments: ["specversion", "id", "source", "type"])
    func `a missing attribute is named`(name: String) throws {
        let members = ["specversion": "1.0", "id": "e", "source": "s", "type": "t"].filter { $0.key != name }
        let body = String(decoding: try JSONEncoder().encode(members), as: UTF8.self)
        #expect(throws: WireError.missing(path: name)) { try Self.structured(body) }
    }

    @Test(arguments: [
        (#"{"specversion":"0.3","id":"e","source":"s","type":"t"}"#, "invalid-field"),
        (#"{"specversion":"1.0","id":"","source":"s","type":"t"}"#, "invalid-field"),
        (#"{"specversion":"1.0","id":7,"source":"s","type":"t"}"#, "invalid-field"),
        (#"{"specversion":"1.0","id":"e","source":"s","type":"t","time":"yesterday"}"#, "invalid-field"),
        (#"["specversion"]"#, "invalid-field"), ("not json", "not-json"), ("", "not-json"), ("{", "not-json"),
        (#"{"id":1e999}"#, "invalid-field"),
    ])
    func `an invalid event is rejected with a stable code`(body: String, code: String) throws {
        let error = #expect(throws: WireError.self) { try Self.structured(body) }
        #expect(error?.code == code, "\(String(describing: error))")
    }

    @Test func `five thousand levels are rejected before parsing`() {
        let body = String(repeating: "[", count: 5000) + String(repeating: "]", count: 5000)
        #expect(throws: WireError.tooDeep(limit: 32)) { try Self.structured(body) }
    }

    @Test func `brackets inside strings are not nesting`() throws {
        let text = String(repeating: "[", count: 100) + #"\\\""#
        #expect(try Self.structured(#"{\#(Self.attributes),"data":{"t":"\#(text)"}}"#).data["t"] != nil)
    }

    @Test func `a body of a megabyte is rejected by its size`() {
        let body = "\"" + String(repeating: "a", count: 1 << 20) + "\""
        #expect(throws: WireError.tooLarge(bytes: (1 << 20) + 2, limit: 256 * 1024)) { try Self.structured(body) }
    }

    @Test func `invalid UTF-8 is rejected with its offset`() {
        let body = Array(#"{"id":"é"#.utf8) + [0xff] + Array(#""}"#.utf8)
        #expect(throws: WireError.notUTF8(offset: 9)) {
            try CloudEvents.decode(routingKey: "a.b", contentType: nil, headers: [:], body: body)
        }
    }

    @Test(arguments: ["id", "type"])
    func `an attribute that becomes an AMQP short string has at most 255 bytes`(name: String) throws {
        func decode(_ value: String) throws -> DomainEvent {
            let members = ["specversion": "1.0", "id": "e", "source": "s", "type": "t"].merging([name: value]) { $1 }
            return try Self.structured(String(decoding: try JSONEncoder().encode(members), as: UTF8.self))
        }
        // Two bytes each: the limit counts bytes, not characters.
        #expect(throws: WireError.invalid(path: name, problem: "it is longer than 255 bytes")) {
            try decode(String(repeating: "é", count: 128))
        }
        #expect(try decode(String(repeating: "a", count: 255)).source == "s")
    }

    @Test func `a trace with a correlation longer than 255 bytes is rejected`() throws {
        func decode(_ length: Int) throws -> Trace {
            let correlation = String(repeating: "c", count: length)
            let body = #"{"id":"\#(UUID().uuidString)","correlation":"\#(correlation)","causation":"x"}"#
            return try WireCoding.decode(Trace.self, from: Array(body.utf8))
        }
        #expect(try decode(255).correlation.count == 255)
        #expect(throws: WireError.invalid(path: "correlation", problem: "it is longer than 255 bytes")) {
            try decode(256)
        }
    }

    @Test(arguments: ["", ".x", "Family.x", "-a.x", String(repeating: "a", count: 64)])
    func `a routing key without an app is rejected`(key: String) {
        let error = #expect(throws: WireError.self) { try Self.structured("{\(Self.attributes)}", routingKey: key) }
        #expect(error?.code == "invalid-field")
    }
}
