package import PushProtocol
import Testing

/// An invalid content and the reason with which the codec rejects it.
package struct RejectedVector: Sendable, CustomTestStringConvertible {
    package let name: String
    package let reason: String
    package let content: Content

    init(_ name: String, _ reason: String, _ content: Content) {
        self.name = name
        self.reason = reason
        self.content = content
    }

    package var testDescription: String { "\(name): \(reason)" }

    private static func live(_ aps: JSONValue) -> Content { RequestVector.override("liveactivity", ["aps": aps]) }
    private static func aps(_ members: JSONValue) -> Content {
        Content(body: "x", apns: APNsOverride(payload: ["aps": members]))
    }
    private static func headers(_ headers: [String: String]) -> Content {
        Content(body: "x", apns: APNsOverride(headers: headers))
    }

    package static let all: [RejectedVector] = [
        .init(
            "A05", "priority-not-allowed-for-push-type",
            Content(silent: true, apns: .init(headers: ["apns-priority": "10"]))),
        .init("A12", "payload-too-large", RequestVector.override("voip", ["x": .string(filler(5121 - 8))])),
        .init("A13", "payload-too-large", Content(body: filler(4068))),
        .init(
            "A18", "live-activity-start-without-alert",
            live([
                "timestamp": 1_767_225_600, "event": "start", "attributes-type": "Game", "attributes": ["id": 7],
                "content-state": ["score": 0],
            ])),
        .init(
            "A25", "collapse-id-not-1-to-64-bytes",
            Content(title: "Hi", body: "Yo", collapseKey: String(repeating: "c", count: 65))),
        .init(
            "A25 in bytes", "collapse-id-not-1-to-64-bytes",
            Content(body: "x", collapseKey: String(repeating: "é", count: 33))),
        .init("A25 empty", "collapse-id-not-1-to-64-bytes", Content(body: "x", collapseKey: "")),
        .init("A28", "data-key-aps-reserved", Content(body: "x", data: ["aps": ["badge": 1]])),
        .init("A28 no object", "apns-payload-not-an-object", Content(body: "x", apns: .init(payload: ["aps": "mine"]))),
        .init("payload", "apns-payload-not-an-object", Content(body: "x", apns: .init(payload: [1]))),
        .init("nothing to show", "alert-without-alert-badge-or-sound", Content(data: ["k": 1])),
        .init(
            "silent with badge", "background-with-alert-badge-or-sound",
            Content(silent: true, apns: .init(payload: ["aps": ["badge": 1]]))),
        .init(
            "background", "background-without-content-available", RequestVector.override("background", ["k": 1])),
        .init("update", "live-activity-without-timestamp", live(["event": "update", "content-state": ["a": 1]])),
        .init("update", "live-activity-without-event", live(["timestamp": 1, "content-state": ["a": 1]])),
        .init("update", "live-activity-without-event", live(["timestamp": 1, "event": "pause"])),
        .init("update", "live-activity-update-without-content-state", live(["timestamp": 1, "event": "update"])),
        .init(
            "start", "live-activity-start-without-attributes-type",
            live(["timestamp": 1, "event": "start", "alert": "x", "attributes": [:], "content-state": [:]])),
        .init(
            "live priority", "priority-not-allowed-for-push-type",
            Content(
                apns: .init(
                    headers: ["apns-push-type": "liveactivity", "apns-priority": "1"],
                    payload: ["aps": ["timestamp": 1, "event": "end"]]))),
        .init(
            "milliseconds", "aps-timestamp-invalid", live(["timestamp": 1_767_225_600_000, "event": "end"])),
        .init(
            "milliseconds", "aps-stale-date-invalid",
            live(["timestamp": 1, "event": "end", "stale-date": 1_767_225_600_000])),
        .init("state", "aps-content-state-invalid", live(["timestamp": 1, "event": "end", "content-state": [1]])),
        .init("widgets", "widgets-without-content-changed", RequestVector.override("widgets", ["aps": [:]])),
        .init(
            "controls", "controls-without-content-changed",
            RequestVector.override("controls", ["aps": ["content-changed": 1]])),
        .init(
            "file provider", "fileprovider-not-container-identifier-and-domain",
            RequestVector.override("fileprovider", ["domain": "d"])),
        .init("badge", "aps-badge-invalid", aps(["badge": "3"])),
        .init("badge", "aps-badge-invalid", aps(["badge": -1])),
        .init("null", "aps-thread-id-invalid", aps(["thread-id": nil])),
        .init("volume", "aps-sound-invalid", aps(["sound": ["critical": 1, "volume": 1.5]])),
        .init("sound", "aps-sound-invalid", aps(["sound": true])),
        .init("relevance", "aps-relevance-score-invalid", aps(["relevance-score": 75])),
        .init("level", "aps-interruption-level-invalid", aps(["interruption-level": "timeSensitive"])),
        .init("arguments", "aps-alert-invalid", aps(["alert": ["loc-key": "B", "loc-args": [1]]])),
        .init("alert", "aps-alert-invalid", aps(["alert": 5])),
        .init("authorization", "header-not-allowed", headers(["authorization": "bearer mine"])),
        .init("id", "header-not-allowed", headers(["Apns-Id": "mine"])),
        .init("path", "header-not-allowed", headers([":path": "/3/device/other"])),
        .init("injection", "header-not-ascii", headers(["apns-new": "a\r\nb"])),
        .init("topic", "topic-not-of-this-app", headers(["apns-topic": "com.other.app"])),
        .init("priority", "apns-priority-invalid", headers(["apns-priority": "7"])),
        .init("expiration", "apns-expiration-invalid", headers(["apns-expiration": "soon"])),
        .init("type", "apns-push-type-invalid", headers(["apns-push-type": "letter"])),
        .init("mdm", "mdm-topic-missing", RequestVector.override("mdm", ["mdm": "PM1"])),
        .init(
            "mdm", "mdm-not-the-push-magic-alone",
            RequestVector.override("mdm", ["mdm": "PM1", "x": 1], ["apns-topic": "com.apple.mgmt.External.X"])),
    ]

    private static func filler(_ count: Int) -> String { String(repeating: "a", count: count) }
}
