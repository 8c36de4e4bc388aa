import PushProtocol
import Testing

@testable import ProviderSimulator

/// The request vectors of the APNs conformance set. All are accepted, except those that a sender must reject itself.
@Suite struct APNsVectorTests {
    struct Vector: Sendable, CustomTestStringConvertible {
        let name: String
        /// `nil` when it is accepted.
        let reason: APNsReason?
        let change: @Sendable (inout PushDraft) -> Void

        init(_ name: String, _ reason: APNsReason? = nil, _ change: @escaping @Sendable (inout PushDraft) -> Void) {
            self.name = name
            self.reason = reason
            self.change = change
        }

        var testDescription: String { name }
    }

    static let activityTopic = "com.example.app.push-type.liveactivity"

    static let vectors: [Vector] = [
        Vector("A01") { _ in },
        Vector("A02") { $0["apns-expiration"] = "0" },
        Vector("A03") { $0["apns-expiration"] = "1767229200" },
        Vector("A04") {
            $0.type("background", #"{"aps":{"content-available":1},"k":"v","n":42}"#)
            $0["apns-priority"] = "5"
        },
        Vector("A05", .badPriority) { $0.type("background", #"{"aps":{"content-available":1}}"#) },
        Vector("A06") { $0.payload(#"{"aps":{"badge":0}}"#) },
        Vector("A07") { $0.payload(#"{"aps":{"alert":{"body":"x"}}}"#) },
        Vector("A08") {
            $0.payload(
                #"{"aps":{"alert":{"loc-key":"B","loc-args":["x","y"],"title-loc-key":"T","title-loc-args":["a"]}}}"#)
        },
        Vector("A09") {
            $0.payload(
                #"{"aps":{"alert":{"body":"Fire"},"sound":{"critical":1,"name":"default","volume":0.8},"interruption-level":"critical"}}"#
            )
        },
        Vector("A11") {
            $0.type("voip", topic: "com.example.app.voip", #"{"callUUID":"c1"}"#)
            $0["apns-expiration"] = "0"
        },
        Vector("A12, 5120 bytes") {
            $0.type("voip", topic: "com.example.app.voip", "")
            $0.body = APNsCheckTests.body(of: 5120)
        },
        Vector("A12, 5121 bytes", .payloadTooLarge) {
            $0.type("voip", topic: "com.example.app.voip", "")
            $0.body = APNsCheckTests.body(of: 5121)
        },
        Vector("A13, 4097 bytes", .payloadTooLarge) { $0.body = APNsCheckTests.body(of: 4097) },
        Vector("A14") { $0.type("location", topic: "com.example.app.location-query", "{}") },
        Vector("A16") {
            $0.type(
                "liveactivity", topic: activityTopic,
                #"{"aps":{"timestamp":1767225600,"event":"update","content-state":{"score":3},"stale-date":1767226200}}"#
            )
            $0["apns-priority"] = "5"
        },
        Vector("A17") {
            $0.type(
                "liveactivity", topic: activityTopic,
                #"{"aps":{"timestamp":1767225600,"event":"start","attributes-type":"Game","attributes":{"id":7},"content-state":{"score":0},"input-push-token":1,"alert":{"title":"Go","body":"Now"}}}"#
            )
        },
        Vector("A18", .invalidPushType) {
            $0.type(
                "liveactivity", topic: activityTopic,
                #"{"aps":{"timestamp":1767225600,"event":"start","attributes-type":"Game","attributes":{},"content-state":{}}}"#
            )
        },
        Vector("A19") {
            $0.type(
                "liveactivity", topic: activityTopic,
                #"{"aps":{"timestamp":1767225600,"event":"end","content-state":{"score":9},"dismissal-date":1767225540}}"#
            )
        },
        Vector("A20") {
            $0.type("pushtotalk", topic: "com.example.app.voip-ptt", #"{"activeSpeaker":"Ann"}"#)
            $0["apns-expiration"] = "0"
        },
        Vector("A21") {
            $0.type("widgets", topic: "com.example.app.push-type.widgets", #"{"aps":{"content-changed":true}}"#)
        },
        Vector("A21 with a number", .invalidPushType) {
            $0.type("widgets", topic: "com.example.app.push-type.widgets", #"{"aps":{"content-changed":1}}"#)
        },
        Vector("A22") {
            $0.type("controls", topic: "com.example.app.push-type.controls", #"{"aps":{"content-changed":true}}"#)
        },
        Vector("A23") {
            $0.type(
                "fileprovider", topic: "com.example.app.pushkit.fileprovider",
                #"{"container-identifier":"c","domain":"d"}"#)
        },
        Vector("A24") { $0.type("mdm", topic: "com.apple.mgmt.External.X", #"{"mdm":"PM1"}"#) },
        Vector("A24 with more", .invalidPushType) {
            $0.type("mdm", topic: "com.apple.mgmt.External.X", #"{"mdm":"PM1","aps":{}}"#)
        },
        Vector("A25, 65 bytes", .badCollapseID) { $0["apns-collapse-id"] = String(repeating: "c", count: 65) },
        Vector("A26") { $0.path += Fixture.token + Fixture.token.prefix(32) },
        Vector("A27", .missingProviderToken) { $0["authorization"] = nil },
        Vector("A29", .badDeviceToken) { $0.path = "/3/device/zz01" },
    ]

    @Test(arguments: vectors) func `a request vector is accepted or rejected`(_ vector: Vector) {
        let answer = Fixture.simulator().push(.production, vector.change)
        #expect(answer?.reason == vector.reason?.rawValue)
        #expect(answer?.status == vector.reason?.status ?? 200)
    }

    @Test(arguments: [
        ("alert", #"{"aps":{"content-available":1}}"#), ("background", #"{"aps":{"content-available":1,"badge":1}}"#),
        ("background", #"{"aps":{"content-available":true}}"#), ("alert", #"{"aps":"x"}"#),
        ("liveactivity", #"{"aps":{"event":"update","content-state":{}}}"#),
        ("liveactivity", #"{"aps":{"timestamp":1,"event":"pause","content-state":{}}}"#),
        ("fileprovider", #"{"domain":"d"}"#), ("controls", "{}"),
    ]) func `a payload that does not fit its push type is rejected`(type: String, payload: String) throws {
        let type = try #require(APNsPushType(rawValue: type))
        let members = try #require(try ProviderJSON.value(of: Array(payload.utf8)).object)
        #expect(APNsPayload.problem(of: members, for: type) != nil)
    }
}
