import FoundationEssentials
import PushProtocol
import PushSending
import TestSupport
import Testing
@testable import APNsSender

/// The reference's request vectors, as far as a push can say them.
@Suite struct RequestVectorTests {
    private let wire = APNsWire(topic: "com.example.app")

    struct Vector: Sendable, CustomTestStringConvertible {
        let name: String
        var content: Content
        var expiresAt: Timestamp?
        /// The `apns-*` headers besides `apns-id` and a default `apns-collapse-id`.
        let headers: [String: String]
        let body: String

        var testDescription: String { name }
    }

    private static func vector(
        _ name: String, _ content: Content, expiresAt: Timestamp? = nil, type: String = "alert", topic: String = "",
        priority: String? = "10", expiration: String? = nil, _ body: String
    ) -> Vector {
        var headers = ["apns-push-type": type, "apns-topic": "com.example.app" + topic]
        headers["apns-priority"] = priority
        headers["apns-expiration"] = expiration
        return Vector(name: name, content: content, expiresAt: expiresAt, headers: headers, body: body)
    }

    private static func override(_ type: String, _ payload: JSONValue, _ headers: [String: String] = [:]) -> Content {
        Content(apns: APNsOverride(headers: headers.merging(["apns-push-type": type]) { $1 }, payload: payload))
    }

    static let vectors: [Vector] = [
        vector("A01", Content(title: "Hi", body: "Yo"), #"{"aps":{"alert":{"body":"Yo","title":"Hi"}}}"#),
        vector(
            "A02", Content(title: "Hi", body: "Yo", apns: APNsOverride(headers: ["apns-expiration": "0"])),
            expiration: "0", #"{"aps":{"alert":{"body":"Yo","title":"Hi"}}}"#),
        vector(
            "A03", Content(title: "Hi", body: "Yo"), expiresAt: .sample + .seconds(3600), expiration: "1767229200",
            #"{"aps":{"alert":{"body":"Yo","title":"Hi"}}}"#),
        vector(
            "A04", Content(silent: true, apns: APNsOverride(payload: ["k": "v", "n": 42])), type: "background",
            priority: "5", #"{"aps":{"content-available":1},"k":"v","n":42}"#),
        vector("A06", Content(badge: 0), #"{"aps":{"badge":0}}"#),
        vector("A07", Content(body: "x"), #"{"aps":{"alert":{"body":"x"}}}"#),
        vector(
            "A08",
            Content(
                apns: APNsOverride(payload: [
                    "aps": [
                        "alert": [
                            "loc-key": "B", "loc-args": ["x", "y"], "title-loc-key": "T", "title-loc-args": ["a"],
                            "subtitle-loc-key": "S",
                        ]
                    ]
                ])),
            #"{"aps":{"alert":{"loc-args":["x","y"],"loc-key":"B","subtitle-loc-key":"S","title-loc-args":["a"],"title-loc-key":"T"}}}"#
        ),
        vector(
            "A09",
            Content(
                body: "Fire", interruptionLevel: .critical,
                apns: APNsOverride(payload: ["aps": ["sound": ["critical": 1, "name": "default", "volume": 0.8]]])),
            #"{"aps":{"alert":{"body":"Fire"},"interruption-level":"critical","sound":{"critical":1,"name":"default","volume":0.8}}}"#
        ),
        vector(
            "A10",
            Content(
                body: "b", category: "c", thread: "t", interruptionLevel: .timeSensitive,
                apns: APNsOverride(payload: [
                    "aps": [
                        "relevance-score": 0.5, "target-content-id": "w", "mutable-content": 1, "filter-criteria": "f",
                    ]
                ])),
            #"{"aps":{"alert":{"body":"b"},"category":"c","filter-criteria":"f","interruption-level":"time-sensitive","mutable-content":1,"relevance-score":0.5,"target-content-id":"w","thread-id":"t"}}"#
        ),
        vector(
            "A11", override("voip", ["callUUID": "c1"]), type: "voip", topic: ".voip", expiration: "0",
            #"{"callUUID":"c1"}"#),
        vector(
            "A14", override("location", ["q": 1]), type: "location", topic: ".location-query", #"{"q":1}"#),
        vector(
            "A16",
            override(
                "liveactivity",
                [
                    "aps": [
                        "timestamp": 1_767_225_600, "event": "update", "content-state": ["score": 3],
                        "stale-date": 1_767_226_200, "relevance-score": 75,
                    ]
                ], ["apns-priority": "5"]),
            type: "liveactivity", topic: ".push-type.liveactivity", priority: "5",
            #"{"aps":{"content-state":{"score":3},"event":"update","relevance-score":75,"stale-date":1767226200,"timestamp":1767225600}}"#
        ),
        vector(
            "A20", override("pushtotalk", ["activeSpeaker": "Ann"]), type: "pushtotalk", topic: ".voip-ptt",
            expiration: "0", #"{"activeSpeaker":"Ann"}"#),
        vector(
            "A21", override("widgets", ["aps": ["content-changed": true]]), type: "widgets",
            topic: ".push-type.widgets", priority: nil, #"{"aps":{"content-changed":true}}"#),
        vector(
            "A22", override("controls", ["aps": ["content-changed": true]]), type: "controls",
            topic: ".push-type.controls", #"{"aps":{"content-changed":true}}"#),
        vector(
            "A23", override("fileprovider", ["container-identifier": "c", "domain": "d"]), type: "fileprovider",
            topic: ".pushkit.fileprovider", priority: nil, #"{"container-identifier":"c","domain":"d"}"#),
        vector(
            "deep link and slashes",
            Content(body: "a/b", deepLink: "app://x/1", data: ["url": "https://e.org/"]),
            #"{"aps":{"alert":{"body":"a/b"}},"data":{"deep_link":"app://x/1","url":"https://e.org/"}}"#),
        vector(
            "image", Content(body: "x", image: "https://e.org/i.png"),
            #"{"aps":{"alert":{"body":"x"},"mutable-content":1},"image":"https://e.org/i.png"}"#),
        vector(
            "a silent push says nothing else",
            Content(
                title: "t", body: "b", badge: 3, sound: "s", category: "c", thread: "h", image: "https://e.org/i",
                data: ["k": 1], silent: true, interruptionLevel: .active),
            type: "background", priority: "5", #"{"aps":{"content-available":1},"data":{"k":1}}"#),
    ]

    @Test(arguments: vectors) func `a content becomes exactly these headers and this body`(vector: Vector) throws {
        let target = Push.Target.sample()
        let push = Push.sample(vector.content, expiresAt: vector.expiresAt, targets: [target])
        let request = try wire.request(to: target, from: wire.render(push, now: .sample))
        #expect(request.path == "/3/device/\(target.token.secret)")
        #expect(String(decoding: request.body, as: UTF8.self) == vector.body)
        var headers = Dictionary(request.headers.map { ($0.name, $0.value) }) { first, _ in first }
        #expect(headers.count == request.headers.count)
        #expect(headers.removeValue(forKey: "apns-id") == target.pushID.uuidString.lowercased())
        let collapse = headers.removeValue(forKey: "apns-collapse-id")
        let type = try #require(APNsPushType(rawValue: vector.headers["apns-push-type"]!))
        #expect(collapse == (type.isCollapsedByDefault ? target.notification.uuidString.lowercased() : nil))
        #expect(headers == vector.headers)
    }

    static let refused: [(String, Content)] = [
        ("priority-not-allowed-for-push-type", Content(silent: true, apns: .init(headers: ["apns-priority": "10"]))),
        ("live-activity-start-without-alert", override("liveactivity", ["aps": ["event": "start"]])),
        ("collapse-id-not-1-to-64-bytes", Content(body: "x", collapseKey: String(repeating: "c", count: 65))),
        ("collapse-id-not-1-to-64-bytes", Content(body: "x", collapseKey: String(repeating: "é", count: 33))),
        ("collapse-id-not-1-to-64-bytes", Content(body: "x", collapseKey: "")),
        ("apns-payload-not-an-object", Content(body: "x", apns: .init(payload: ["aps": "mine"]))),
        ("apns-payload-not-an-object", Content(body: "x", apns: .init(payload: [1]))),
        ("alert-without-alert-badge-or-sound", Content(data: ["k": 1])),
        ("background-with-alert-badge-or-sound", Content(silent: true, apns: .init(payload: ["aps": ["badge": 1]]))),
        ("background-without-content-available", override("background", ["k": 1])),
        ("header-not-allowed", Content(body: "x", apns: .init(headers: ["authorization": "bearer mine"]))),
        ("header-not-allowed", Content(body: "x", apns: .init(headers: ["Apns-Id": "mine"]))),
        ("header-not-allowed", Content(body: "x", apns: .init(headers: [":path": "/3/device/other"]))),
        ("header-not-ascii", Content(body: "x", apns: .init(headers: ["apns-new": "a\r\nb"]))),
        ("topic-not-of-this-app", Content(body: "x", apns: .init(headers: ["apns-topic": "com.other.app"]))),
        ("apns-priority-invalid", Content(body: "x", apns: .init(headers: ["apns-priority": "7"]))),
        ("apns-expiration-invalid", Content(body: "x", apns: .init(headers: ["apns-expiration": "soon"]))),
        ("apns-push-type-invalid", Content(body: "x", apns: .init(headers: ["apns-push-type": "letter"]))),
        ("mdm-topic-missing", override("mdm", ["mdm": "PM1"])),
        ("payload-too-large", Content(body: String(repeating: "a", count: 4068))),
    ]

    @Test(arguments: refused) func `what APNs would refuse never reaches the wire`(reason: String, content: Content) {
        let push = Push.sample(content)
        #expect(throws: LocalRejection(reason)) {
            try wire.request(to: push.targets[0], from: wire.render(push, now: .sample))
        }
    }

    @Test(arguments: ["zz01", "", "abc", "00 11"]) func `a token that is not hex is refused, and suspected`(
        token: String
    ) {
        let push = Push.sample(targets: [.sample(token: token)])
        #expect(throws: LocalRejection("malformed-token", suspectToken: true)) {
            try wire.request(to: push.targets[0], from: wire.render(push, now: .sample))
        }
    }

    @Test(arguments: [(APNsPushType.alert, 4096), (.voip, 5120)])
    func `a body may fill its limit and no byte more`(type: APNsPushType, limit: Int) throws {
        let frame = #"{"aps":{"alert":{"body":""}}}"#.utf8.count
        for (extra, fits) in [(0, true), (1, false)] {
            let content = Content(
                body: String(repeating: "a", count: limit - frame + extra),
                apns: .init(headers: ["apns-push-type": type.rawValue]))
            let push = Push.sample(content)
            let request = try? wire.request(to: push.targets[0], from: wire.render(push, now: .sample))
            #expect(request?.body.count == (fits ? limit : nil))
        }
    }

    @Test func `64 bytes of collapse id go through, and tokens of any length`() throws {
        let token = String(repeating: "0123456789abcdef", count: 10)
        let push = Push.sample(
            Content(body: "x", collapseKey: String(repeating: "c", count: 64)), targets: [.sample(token: token)])
        let request = try wire.request(to: push.targets[0], from: wire.render(push, now: .sample))
        #expect(request["apns-collapse-id"]?.count == 64)
        #expect(request.path == "/3/device/\(token)")
    }

    @Test func `mdm pushes carry their own topic`() throws {
        let push = Push.sample(
            Self.override("mdm", ["mdm": "PM1"], ["apns-topic": "com.apple.mgmt.External.X"]))
        let request = try wire.request(to: push.targets[0], from: wire.render(push, now: .sample))
        #expect(request["apns-topic"] == "com.apple.mgmt.External.X")
        #expect(String(decoding: request.body, as: UTF8.self) == #"{"mdm":"PM1"}"#)
    }

    @Test func `each badge among the targets is rendered once, and a target's own wins`() throws {
        let targets = (0..<500).map { Push.Target.sample(badge: $0 % 2 == 0 ? nil : 7) }
        let push = Push.sample(Content(body: "x", badge: 1), targets: targets)
        let rendering = wire.render(push, now: .sample)
        #expect(rendering.bodies.count == 2)
        for target in targets {
            let body = String(decoding: try wire.request(to: target, from: rendering).body, as: UTF8.self)
            #expect(body.contains(#""badge":\#(target.badge ?? 1)"#))
        }
    }

    @Test func `what never repeats and what is secret stays out of the header table`() throws {
        let push = Push.sample(expiresAt: .sample)
        let request = try wire.request(to: push.targets[0], from: wire.render(push, now: .sample))
        let indexed = request.headers.filter { !$0.neverIndexed }.map(\.name)
        #expect(indexed == ["apns-push-type", "apns-topic", "apns-priority"])
    }
}
