import Crypto
import Foundation
import PushProtocol
import Testing

@testable import EventsAPI

/// The requests of Matrix homeservers, and the pushkeys in them.
@Suite struct MatrixNotifyTests {
    static let key = String(repeating: "k", count: 32)
    static let keys = MatrixPushkey.keys(key)

    /// A pushkey as an app's backend signs it.
    static func pushkey(_ app: String = "demo", _ user: String = "457", key: String = key) -> String {
        let signed = "\(app).\(base64URL(Data(user.utf8)))"
        let code = HMAC<SHA256>.authenticationCode(
            for: Data(signed.utf8), using: SymmetricKey(data: Data(key.utf8)))
        return "\(signed).\(base64URL(Data(code)))"
    }

    private static func base64URL(_ data: Data) -> String {
        data.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }

    /// The example of the specification, with members added or replaced.
    static func body(_ pushkeys: [String], _ change: [String: JSONValue] = [:]) -> String {
        let devices = pushkeys.map { pushkey -> JSONValue in
            [
                "app_id": "org.matrix.matrixConsole.ios", "pushkey": .string(pushkey), "pushkey_ts": 12_345_678,
                "data": [:], "tweaks": ["sound": "bing"],
            ]
        }
        var notification: [String: JSONValue] = [
            "event_id": "$3957tyerfgewrf384", "room_id": "!slw48wfj34rtnrf:example.com", "type": "m.room.message",
            "sender": "@exampleuser:matrix.org", "sender_display_name": "Major Tom", "room_name": "Mission Control",
            "room_alias": "#exampleroom:matrix.org", "user_is_target": false, "prio": "high",
            "content": ["msgtype": "m.text", "body": "I'm floating in a most peculiar way."],
            "counts": ["unread": 2, "missed_calls": 1], "devices": .array(devices),
        ]
        for (name, value) in change { notification[name] = value == .null ? nil : value }
        let json: JSONValue = ["notification": .object(notification)]
        return String(decoding: (try? WireCoding.encode(json)) ?? [], as: UTF8.self)
    }

    /// The direct notification that a request becomes.
    private func event(_ change: [String: JSONValue] = [:]) throws -> DomainEvent? {
        let notify = try MatrixNotify(Array(Self.body([Self.pushkey()], change).utf8))
        let pushkey = try #require(MatrixPushkey(notify.devices[0].pushkey, keys: Self.keys))
        guard let text = try notify.event(to: pushkey, sound: notify.devices[0].sound) else { return nil }
        return try EventReader(app: pushkey.app, mayRequestNotifications: true).structured(text).event
    }

    @Test func `a message has the room as title, the sender in its text, and Matrix' ids as data`() throws {
        let event = try #require(try event())
        #expect(event.type == DirectNotification.eventType && event.source == "/matrix" && event.app.rawValue == "demo")
        let content: JSONValue = [
            "title": "Mission Control", "body": "Major Tom: I'm floating in a most peculiar way.", "badge": 2,
            "sound": "bing", "thread": "!slw48wfj34rtnrf:example.com",
            "data": ["event_id": "$3957tyerfgewrf384", "room_id": "!slw48wfj34rtnrf:example.com"],
            "apns": ["payload": ["aps": ["mutable-content": 1]]],
        ]
        #expect(event.data == ["users": ["457"], "pushOnly": true, "lane": "interactive", "content": content])
    }

    @Test func `a repeated request is the same event, and another user's or event's is not`() throws {
        let id = try event()?.id
        #expect(try event()?.id == id)
        #expect(try event(["event_id": "$other"])?.id != id)
        let notify = try MatrixNotify(Array(Self.body([Self.pushkey("demo", "458")]).utf8))
        let pushkey = try #require(MatrixPushkey(notify.devices[0].pushkey, keys: Self.keys))
        let text = try #require(try notify.event(to: pushkey, sound: nil))
        #expect(!String(decoding: text, as: UTF8.self).contains(id ?? "?"))
    }

    @Test func `an event without its content is worded in general`() throws {
        let encrypted = try event([
            "type": "m.room.encrypted", "content": .null, "room_name": .null, "room_alias": .null,
        ])
        #expect(encrypted?.data["content"]?["body"] == "New message")
        #expect(encrypted?.data["content"]?["title"] == "Major Tom")
        #expect(try event(["type": "m.room.member", "content": .null])?.data["content"]?["body"] == "New activity")
        let bare = try event([
            "type": .null, "content": .null, "room_name": .null, "room_alias": .null, "sender": .null,
            "sender_display_name": .null, "counts": .null,
        ])
        #expect(bare?.data["content"]?["body"] == "New message" && bare?.data["content"]?["title"] == nil)
        #expect(bare?.data["content"]?["badge"] == nil)
    }

    @Test func `low priority is the bulk lane without a sound`() throws {
        let quiet = try event(["prio": "low"])
        #expect(quiet?.data["lane"] == "bulk" && quiet?.data["content"]?["sound"] == nil)
    }

    @Test func `without an event it only sets the badge, and without a number it is nothing`() throws {
        let change: [String: JSONValue] = ["event_id": .null, "counts": ["unread": 200_000]]
        let badge = try event(change)
        #expect(badge?.data == ["users": ["457"], "pushOnly": true, "content": ["badge": 99_999]])
        #expect(try event(change)?.id != badge?.id)
        #expect(try event(["event_id": .null, "counts": ["missed_calls": 1]]) == nil)
    }

    @Test func `long texts are cut at a character and stay within a push`() throws {
        let family = "👨‍👩‍👧‍👦"
        let long = try event([
            "content": ["body": .string(String(repeating: family, count: 900))],
            "room_name": .string(String(repeating: "é", count: 400)),
        ])
        let body = try #require(long?.data["content"]?["body"]?.string)
        let title = try #require(long?.data["content"]?["title"]?.string)
        #expect(body.utf8.count <= 1000 && body.hasSuffix("\(family)…") && title.utf8.count <= 200)
        // One character may be larger than a title.
        let zalgo = "a" + String(repeating: "\u{301}", count: 4000)
        #expect(try event(["room_name": .string(zalgo)])?.data["content"]?["title"] == "…")
    }

    @Test(arguments: [
        "", "{", "[]", "{}", #"{"notification": {}}"#, #"{"notification": {"devices": []}}"#,
        #"{"notification": {"devices": [{}]}}"#, #"{"notification": {"devices": [{"pushkey": 7}]}}"#,
        #"{"notification": {"devices": "x"}}"#,
        body(["k"], ["event_id": .string(String(repeating: "e", count: 256))]),
        body(Array(repeating: "k", count: MatrixNotify.maximumDevices + 1)),
    ])
    func `an invalid body is refused`(body: String) throws {
        let refusal = #expect(throws: EventRefusal.self) { try MatrixNotify(Array(body.utf8)) }
        #expect(refusal?.status == 400)
    }

    @Test func `only a pushkey that one of the keys signed is valid`() throws {
        let valid = Self.pushkey("demo", "ü/7")
        let pushkey = try #require(MatrixPushkey(valid, keys: Self.keys))
        #expect(pushkey.app.rawValue == "demo" && pushkey.user.rawValue == "ü/7")
        let other = String(repeating: "x", count: 40)
        #expect(MatrixPushkey(valid, keys: MatrixPushkey.keys("\(other) \(Self.key)\n")) == pushkey)
        #expect(MatrixPushkey(valid, keys: MatrixPushkey.keys(other)) == nil)
        #expect(MatrixPushkey(valid, keys: []) == nil)
        let parts = valid.split(separator: ".")
        for text in [
            "", "..", "demo", "other.\(parts[1]).\(parts[2])", "demo.\(parts[1])x.\(parts[2])",
            "demo.\(parts[1]).\(parts[2].dropLast())", "demo.\(parts[1]).\(parts[2])=", "\(valid).", " \(valid)",
            Self.pushkey("No App"), Self.pushkey("demo", ""), Self.pushkey("demo", String(repeating: "u", count: 400)),
        ] {
            #expect(MatrixPushkey(text, keys: Self.keys) == nil, "\(text)")
        }
    }
}
