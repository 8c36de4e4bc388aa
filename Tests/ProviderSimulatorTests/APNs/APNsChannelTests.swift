import PushProtocol
import Testing

@testable import ProviderSimulator

/// Broadcast channels (ProviderFacts.md §A.11).
@Suite struct APNsChannelTests {
    static let path = "/1/apps/\(Fixture.bundle)/channels"
    static let requestID = "323e4567-e89b-12d3-a456-426614174000"

    static func ask(
        _ simulator: Simulator, _ method: String, _ path: String = path, channel: String? = nil, _ body: String = "",
        _ headers: [Header] = []
    ) -> ReceivedResponse? {
        var all = [Header("authorization", Fixture.authorization), Header("apns-request-id", requestID)] + headers
        if let channel { all.append(Header("apns-channel-id", channel)) }
        return ReceivedResponse(
            simulator.respondAPNs(
                ProviderRequest(
                    connection: 1, stream: 1, method: method, path: path, headers: all, body: Array(body.utf8),
                    receivedAt: Fixture.now), in: .development))
    }

    static func create(_ simulator: Simulator, policy: Int = 1) throws -> String {
        let answer = ask(simulator, "POST", body: #"{"message-storage-policy":\#(policy),"push-type":"LiveActivity"}"#)
        #expect(answer?.status == 201 && answer?.body == nil && answer?.headers["apns-request-id"] == requestID)
        return try #require(answer?.headers["apns-channel-id"])
    }

    static func ask(_ simulator: Simulator, _ method: String, body: String) -> ReceivedResponse? {
        ask(simulator, method, path, channel: nil, body)
    }

    static let update = #"{"aps":{"timestamp":1,"event":"update","content-state":{"score":3}}}"#

    static func send(
        _ simulator: Simulator, _ channel: String?, expiration: String? = "0", _ body: String = update
    ) -> ReceivedResponse? {
        var headers = [Header("apns-push-type", "liveactivity"), Header("apns-priority", "10")]
        if let expiration { headers.append(Header("apns-expiration", expiration)) }
        return ask(simulator, "POST", "/4/broadcasts/apps/\(Fixture.bundle)", channel: channel, body, headers)
    }

    @Test func `a channel is created, read, listed and deleted`() throws {
        let simulator = Fixture.simulator()
        let channel = try Self.create(simulator)
        #expect(
            Self.ask(simulator, "GET", channel: channel)?.body
                == ["message-storage-policy": 1, "push-type": "LiveActivity"])
        let all = "/1/apps/\(Fixture.bundle)/all-channels"
        #expect(Self.ask(simulator, "GET", all)?.body == ["channels": [.string(channel)]])
        let deleted = Self.ask(simulator, "DELETE", channel: channel)
        #expect(deleted?.status == 204 && deleted?.body == nil)
        #expect(Self.ask(simulator, "GET", channel: channel)?.reason == "ChannelNotRegistered")
    }

    @Test func `a broadcast reaches the phones that started with its channel, until the end`() throws {
        let simulator = Fixture.simulator()
        let channel = try Self.create(simulator)
        let start = """
            {"aps":{"timestamp":1,"event":"start","content-state":{"score":0},"attributes-type":"A","attributes":{},
            "alert":{"title":"x"},"input-push-channel":"\(channel)"}}
            """
        let token = String(repeating: "ab", count: 32)
        let headers = [
            Header("apns-push-type", "liveactivity"), Header("apns-topic", "\(Fixture.bundle).push-type.liveactivity"),
        ]
        #expect(Self.ask(simulator, "POST", "/3/device/\(token)", start, headers)?.status == 200)
        func shown() -> (String, JSONValue)? {
            simulator.wall.phone(Phone.ID(provider: .apns, token: token))?.cards.first?.shown.activity
        }
        #expect(shown()?.0 == "start")
        #expect(Self.send(simulator, channel)?.status == 200)
        #expect(shown()?.0 == "update" && shown()?.1 == ["score": 3])
        #expect(Self.send(simulator, channel, #"{"aps":{"timestamp":2,"event":"end"}}"#)?.status == 200)
        #expect(shown()?.0 == "end")
        #expect(Self.send(simulator, channel)?.status == 200)
        #expect(shown()?.0 == "end")
    }

    @Test func `a broadcast is accepted, logged and scripted like a push`() throws {
        let simulator = Fixture.simulator()
        let channel = try Self.create(simulator)
        let sent = Self.send(simulator, channel)
        #expect(sent?.status == 200 && sent?.headers["apns-request-id"] == Self.requestID)
        #expect(sent?.headers["apns-unique-id"] != nil)
        let entry = simulator.log.requests(of: .apns).last
        #expect(entry?.response.isDelivered == true && entry?.response.app == Fixture.bundle)
        #expect(simulator.log.phones.isEmpty, "a channel is no phone")
        try simulator.play(#"{"provider":"apns","token":"\#(channel)","status":429,"count":1}"#)
        #expect(Self.send(simulator, channel)?.status == 429)
        try simulator.play(#"{"provider":"apns","app":"\#(Fixture.bundle)","status":503}"#)
        #expect(Self.send(simulator, channel)?.status == 503)
    }

    @Test func `invalid channel requests get Apple's reasons`() throws {
        let simulator = Fixture.simulator()
        let kept = try Self.create(simulator)
        let transient = try Self.create(simulator, policy: 0)
        #expect(Self.ask(simulator, "POST", body: "[]")?.reason == "BadRequestPayload")
        #expect(Self.ask(simulator, "POST", body: #"{"message-storage-policy":1}"#)?.reason == "MissingPushType")
        #expect(
            Self.ask(simulator, "POST", body: #"{"message-storage-policy":7,"push-type":"LiveActivity"}"#)?.reason
                == "BadRequestPayload")
        #expect(Self.ask(simulator, "PUT")?.reason == "MethodNotAllowed")
        #expect(Self.ask(simulator, "GET")?.reason == "MissingChannelId")
        #expect(Self.ask(simulator, "GET", channel: "no!")?.reason == "BadChannelId")
        #expect(Self.send(simulator, nil)?.reason == "MissingChannelId")
        #expect(Self.send(simulator, transient, expiration: "99")?.reason == "BadExpirationDate")
        #expect(Self.send(simulator, kept, expiration: "99")?.status == 200)
        #expect(Self.send(simulator, kept, expiration: nil)?.reason == "BadExpirationDate")
        #expect(Self.send(simulator, kept, "")?.reason == "PayloadEmpty")
        let long = #"{"aps":{"timestamp":1,"event":"end"},"x":"\#(String(repeating: "x", count: 5120))"}"#
        #expect(Self.send(simulator, kept, long)?.status == 413)
        let other = Self.ask(simulator, "GET", "/1/apps/com.example.other/all-channels")
        #expect(other?.status == 403 && other?.reason == "TopicMismatch")
    }

    @Test func `base64 follows RFC 4648`() {
        for (text, encoded) in [("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            #expect(Base64.text(of: Array(text.utf8)) == encoded && Base64.isText(encoded))
        }
        #expect(!["", "Zg=", "Zg", "Z===", "Zm9v!A=="].contains(where: Base64.isText))
    }
}
