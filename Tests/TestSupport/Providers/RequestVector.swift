package import PushProtocol
import FoundationEssentials
import Testing

/// A request vector (ProviderFacts.md §E): a content and the resulting request.
///
/// In addition, visible pushes have their notification id as collapse id.
package struct RequestVector: Sendable, CustomTestStringConvertible {
    package let name: String
    package var content: Content
    /// The lifetime from the time of sending.
    package var lifetime: Duration?
    package var token: String
    /// The `apns-*` headers, without `apns-id`, `apns-expiration` from the lifetime, and the default
    /// `apns-collapse-id`.
    package let headers: [String: String]
    package let body: String

    package var testDescription: String { name }

    /// The vectors' tokens `T1` and `T2`.
    package static let t1 = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
    package static let t2 = t1 + t1 + t1.prefix(32)

    /// The token in the path, in lower-case hexadecimal.
    package var hexToken: String { name == "A24" ? Self.t1 : token }

    /// All `apns-*` headers of the request to `target`, sent at `now`.
    package func headers(to target: Push.Target, now: Timestamp) -> [String: String] {
        var headers = headers
        headers["apns-id"] = target.pushID.uuidString.lowercased()
        if let lifetime { headers["apns-expiration"] = String((now + lifetime).seconds) }
        let isSeen = headers["apns-push-type"] == "alert" || headers["apns-push-type"] == "background"
        if isSeen, headers["apns-collapse-id"] == nil {
            headers["apns-collapse-id"] = target.notification.uuidString.lowercased()
        }
        return headers
    }
}

extension RequestVector {
    private static func vector(
        _ name: String, _ content: Content, lifetime: Duration? = nil, token: String = t1, type: String = "alert",
        topic: String = "", wholeTopic: String? = nil, priority: String? = "10", expiration: String? = nil,
        collapse: String? = nil, _ body: String
    ) -> RequestVector {
        var headers = ["apns-push-type": type, "apns-topic": wholeTopic ?? "com.example.app" + topic]
        headers["apns-priority"] = priority
        headers["apns-expiration"] = expiration
        headers["apns-collapse-id"] = collapse
        return RequestVector(
            name: name, content: content, lifetime: lifetime, token: token, headers: headers, body: body)
    }

    package static func override(_ type: String, _ payload: JSONValue, _ headers: [String: String] = [:]) -> Content {
        Content(apns: APNsOverride(headers: headers.merging(["apns-push-type": type]) { $1 }, payload: payload))
    }

    package static let all: [RequestVector] = [
        vector("A01", Content(title: "Hi", body: "Yo"), #"{"aps":{"alert":{"body":"Yo","title":"Hi"}}}"#),
        vector(
            "A02", Content(title: "Hi", body: "Yo", apns: APNsOverride(headers: ["apns-expiration": "0"])),
            expiration: "0", #"{"aps":{"alert":{"body":"Yo","title":"Hi"}}}"#),
        vector(
            "A03", Content(title: "Hi", body: "Yo"), lifetime: .seconds(3600),
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
            "A17",
            override(
                "liveactivity",
                [
                    "aps": [
                        "timestamp": 1_767_225_600, "event": "start", "attributes-type": "Game",
                        "attributes": ["id": 7], "content-state": ["score": 0], "input-push-token": 1,
                        "alert": ["title": "Go", "body": "Now"],
                    ]
                ]),
            type: "liveactivity", topic: ".push-type.liveactivity",
            #"{"aps":{"alert":{"body":"Now","title":"Go"},"attributes":{"id":7},"attributes-type":"Game","content-state":{"score":0},"event":"start","input-push-token":1,"timestamp":1767225600}}"#
        ),
        vector(
            "A19",
            override(
                "liveactivity",
                [
                    "aps": [
                        "timestamp": 1_767_225_600, "event": "end", "content-state": ["score": 9],
                        "dismissal-date": 1_767_225_540,
                    ]
                ]),
            type: "liveactivity", topic: ".push-type.liveactivity",
            #"{"aps":{"content-state":{"score":9},"dismissal-date":1767225540,"event":"end","timestamp":1767225600}}"#
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
            "A24",
            override("mdm", ["mdm": "PM1"], ["apns-topic": "com.apple.mgmt.External.X"]),
            token: "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", type: "mdm", wholeTopic: "com.apple.mgmt.External.X",
            priority: nil, #"{"mdm":"PM1"}"#),
        vector(
            "A25",
            Content(title: "Hi", body: "Yo", collapseKey: String(repeating: "c", count: 64)),
            collapse: String(repeating: "c", count: 64), #"{"aps":{"alert":{"body":"Yo","title":"Hi"}}}"#),
        vector(
            "A26", Content(title: "Hi", body: "Yo"), token: RequestVector.t2,
            #"{"aps":{"alert":{"body":"Yo","title":"Hi"}}}"#),
        vector(
            "complication", override("complication", ["family": "corner"]), type: "complication",
            topic: ".complication", priority: nil, #"{"family":"corner"}"#),
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
}
