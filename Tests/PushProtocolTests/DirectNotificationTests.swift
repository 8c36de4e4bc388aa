import Foundation
import PushProtocol
import Testing

/// The data of a direct notification: accepted members and the errors of others.
@Suite struct DirectNotificationTests {
    static let users: DirectNotification.Recipients = .users([UserID(rawValue: "457")!, UserID(rawValue: "458")!])

    static func read(_ text: String) throws -> DirectNotification {
        try DirectNotification(WireCoding.decode(JSONValue.self, from: Array(text.utf8)))
    }

    /// The error of some data; `nil` if it is accepted.
    static func error(_ text: String) throws -> String? {
        do {
            _ = try read(text)
            return nil
        } catch let error as WireError {
            return "\(error)"
        }
    }

    /// A notification with the least members and further ones.
    static func with(_ members: String) -> String { #"{"users": ["457"], "content": {"body": "Hi"}, \#(members)}"# }

    static func content(_ members: String) -> String { #"{"users": ["457"], "content": {\#(members)}}"# }

    @Test func `the golden file has every member, and is written as it was read`() throws {
        let golden = try WireCoding.decode(
            JSONValue.self, from: MessageGoldenTests.bytes("direct-notification.v1.json"))
        let direct = try DirectNotification(golden)
        #expect(
            direct
                == DirectNotification(
                    to: Self.users,
                    content: Content(
                        title: "Dinner", subtitle: "Tonight", body: "At {{seven}}.", badge: 1, sound: "default",
                        category: "invitation", thread: "dinner/7", deepLink: "family://dinner/7",
                        image: "https://family.example/dinner.png", data: ["dinner_id": 7, "guests": nil],
                        interruptionLevel: .timeSensitive, collapseKey: "dinner-7",
                        apns: APNsOverride(
                            headers: ["apns-priority": "10"], payload: ["aps": ["relevance-score": 1]]),
                        fcm: FCMOverride(message: ["android": ["priority": "HIGH"]], validateOnly: false),
                        web: WebPushOverride(urgency: .low, message: ["mutable": true])),
                    type: "invitations", lane: .bulk, at: Date(timeIntervalSince1970: 1_767_225_600),
                    ttl: .seconds(3600), isPushOnly: true))
        #expect(direct.json == golden)
        let known = Set(DirectNotification.members).subtracting([
            "group", "roles", "topic", "tag", "everyone", "expires", "silent",
        ])
        #expect(golden.object.map { Set($0.keys) } == known)
        #expect(
            golden["content"]?.object.map { Set($0.keys) } == Set(DirectNotification.contentMembers))
    }

    @Test(arguments: [
        #"{"group": "team/7", "roles": ["worker", "lead"], "content": {"title": "T"}}"#,
        #"{"topic": "news", "content": {"title": "T"}, "pushOnly": true}"#,
        #"{"tag": "beta", "content": {"body": "B"}, "lane": "bulk"}"#,
        #"{"everyone": true, "content": {"body": "B"}, "expires": "2026-01-01T00:00:00.000Z"}"#,
        #"{"users": ["1"], "content": {"data": {"a": [1, 2.5, {}]}}, "silent": true}"#,
        #"{"users": ["1"], "content": {"badge": 0}}"#,
    ])
    func `every kind of recipients and of content is written as it was read`(text: String) throws {
        let data = try WireCoding.decode(JSONValue.self, from: Array(text.utf8))
        #expect(try DirectNotification(data).json == data)
    }

    @Test func `users are strings or numbers, each once, and null members are absent`() throws {
        let direct = try Self.read(
            #"{"users": [457, "458", "457"], "topic": null, "content": {"body": "B", "title": null}, "type": null}"#)
        #expect(direct.recipients == Self.users)
        #expect(direct == DirectNotification(to: Self.users, content: Content(body: "B")))
    }

    @Test func `a lifetime begins at the scheduled time, or at the arrival`() throws {
        let arrival = Timestamp(milliseconds: 1_000_000)
        #expect(try Self.read(Self.with(#""ttl": 60"#)).expiry(arrivedAt: arrival) == arrival + .seconds(60))
        let planned = try Self.read(Self.with(#""ttl": 60, "at": "2026-01-01T00:00:00Z""#))
        #expect(planned.expiry(arrivedAt: arrival) == Timestamp(milliseconds: 1_767_225_660_000))
        let exact = try Self.read(Self.with(#""expires": "2026-01-01T00:00:00Z""#))
        #expect(exact.expiry(arrivedAt: arrival) == Timestamp(milliseconds: 1_767_225_600_000))
        #expect(try Self.read(Self.content(#""body": "B""#)).expiry(arrivedAt: arrival) == nil)
    }

    /// Data and the error that it causes.
    static let refused: KeyValuePairs<String, String> = [
        #"[]"#: "data is invalid: expected an object",
        #"{"content": {"body": "B"}}"#:
            "data is invalid: exactly one of users, group, topic, tag, everyone must name the recipients",
        #"{"users": ["1"], "topic": "news", "content": {"body": "B"}}"#:
            "data is invalid: exactly one of users, group, topic, tag, everyone must name the recipients",
        #"{"users": ["1"]}"#: "content is missing",
        #"{"users": "1", "content": {"body": "B"}}"#: "users is invalid: expected a list of user ids",
        #"{"users": [], "content": {"body": "B"}}"#:
            "users is invalid: expected 1 to 10000 users; send several, or use a group or a tag",
        #"{"users": ["1", true], "content": {"body": "B"}}"#:
            "users.1 is invalid: a user id is 1–256 bytes without control characters",
        #"{"users": [""], "content": {"body": "B"}}"#:
            "users.0 is invalid: a user id is 1–256 bytes without control characters",
        #"{"everyone": false, "content": {"body": "B"}}"#:
            "everyone is invalid: it can only be true; name other recipients, or set it",
        #"{"topic": "two words", "content": {"body": "B"}}"#:
            "topic is invalid: a topic or tag is 1–128 visible ASCII characters",
        #"{"group": "", "content": {"body": "B"}}"#:
            "group is invalid: a name is 1–256 bytes without control characters",
        #"{"group": "g", "roles": [], "content": {"body": "B"}}"#:
            "roles is invalid: expected a list of names; a name is 1–256 bytes without control characters",
        with(#""roles": ["a"]"#): "roles is invalid: only a group has roles; remove it",
        with(#""lane": "fast""#): "lane is invalid: expected one of interactive, bulk",
        with(#""at": "tomorrow""#):
            "at is invalid: expected an RFC 3339 time such as 2026-01-01T00:00:00Z",
        with(#""ttl": 0"#): "ttl is invalid: expected whole seconds from 1 to 34560000",
        with(#""ttl": "1h""#): "ttl is invalid: expected whole seconds from 1 to 34560000",
        with(#""ttl": 9, "expires": "2026-01-01T00:00:00Z""#): "ttl is invalid: remove it, or remove expires",
        with(#""at": "2026-01-02T00:00:00Z", "expires": "2026-01-01T00:00:00Z""#):
            "expires is invalid: it must be later than at",
        with(#""silent": true"#): "content.body is invalid: a silent push shows nothing; remove it, or silent",
        with(#""silent": "yes""#): "silent is invalid: expected true or false",
        with(#""collapse": "\#(String(repeating: "k", count: 65))""#):
            "collapse is invalid: expected 1–64 visible ASCII characters",
        with(#""type": """#): "type is invalid: a name is 1–256 bytes without control characters",
        content(#""badge": 100000, "body": "B""#):
            "content.badge is invalid: expected a whole number from 0 to 99999",
        content(#""body": """#): "content.body is invalid: it is empty; write a text, or remove it",
        content(#""body": 7"#): "content.body is invalid: expected a string",
        content(#""subtitle": "S""#):
            "content is invalid: add a title or a body, a badge alone, or silent: true",
        content(#""body": "B", "image": "http://a.example/b.png""#):
            "content.image is invalid: expected an https URL, because phones load no other",
        content(#""body": "B", "data": []"#): "content.data is invalid: expected an object",
        content(#""body": "B", "apns": {"headers": {"apns-id": "x"}}"#):
            "content.apns.headers is invalid: only apns-* headers except apns-id can be set, with strings as values",
        content(#""body": "B", "fcm": {"message": 1}"#): "content.fcm.message is invalid: expected an object",
        #"{"users": ["1"], "content": {"badge": 1}, "at": "2026-01-01T00:00:00Z"}"#:
            "at is invalid: it needs a title or a body; add one, or remove it",
        content(#""body": "\#(String(repeating: "b", count: 4100))""#):
            "content is invalid: it has 4126 bytes; a push carries at most 4096",
    ]

    @Test func `an error names the member and the way to correct it`() throws {
        for (text, problem) in Self.refused { #expect(try Self.error(text) == problem, "\(text.prefix(200))") }
    }

    @Test(arguments: [#""topic": "news""#, #""tag": "beta""#, #""everyone": true"#])
    func `an audience takes no member that needs users' settings`(recipients: String) throws {
        for member in [#""type": "chat""#, #""at": "2026-01-01T00:00:00Z""#, #""lane": "interactive""#] {
            let error = try Self.error(#"{\#(recipients), "content": {"body": "B"}, \#(member)}"#)
            #expect(error?.hasSuffix("remove it") == true, "\(error ?? "accepted")")
        }
    }

    @Test func `an unknown member is refused everywhere, and not quoted`() throws {
        for text in [
            Self.with(#""s3cret": 1"#), Self.content(#""body": "B", "s3cret": 1"#),
            Self.content(#""body": "B", "apns": {"s3cret": {}}"#),
            Self.content(#""body": "B", "fcm": {"s3cret": {}}"#),
        ] {
            let error = try #require(try Self.error(text))
            #expect(error.contains("unknown member") && !error.contains("s3cret"))
        }
    }

    /// Replaces each value of the golden file by wrong values, one at a time.
    @Test func `no wrong value crashes, and every accepted one is written as it was read`() throws {
        let golden = try WireCoding.decode(
            JSONValue.self, from: MessageGoldenTests.bytes("direct-notification.v1.json"))
        let wrong: [JSONValue] = [
            nil, true, -1, 1e300, .int(.max), .int(.min), "", "\u{0}", .string(String(repeating: "x", count: 10_000)),
            [], [nil], [[]], [:], ["": nil],
        ]
        var accepted = 0
        func check(_ data: JSONValue) throws {
            guard let direct = try? DirectNotification(data) else { return }
            #expect(try DirectNotification(direct.json) == direct)
            accepted += 1
        }
        let members = try #require(golden.object)
        for (name, value) in members {
            for replacement in wrong {
                try check(.object(members.merging([name: replacement]) { $1 }))
                guard let inner = value.object else { continue }
                for member in inner.keys {
                    let changed = JSONValue.object(inner.merging([member: replacement]) { $1 })
                    try check(.object(members.merging([name: changed]) { $1 }))
                }
            }
        }
        #expect(accepted > 10)
    }
}
