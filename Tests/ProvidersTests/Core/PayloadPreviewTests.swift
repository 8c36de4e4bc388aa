import FoundationEssentials
import Providers
import PushProtocol
import Testing
import TestSupport

/// Previews of requests. The senders' tests compare them with real requests.
@Suite struct PayloadPreviewTests {
    private static let now = Timestamp(milliseconds: 1_767_225_600_000)

    private static func preview(_ content: Content, _ provider: Provider, bundle: String? = nil) -> PayloadPreview {
        let target = Push.Target.sample(token: PayloadPreview.token(for: provider).secret)
        return PayloadPreview(.sample(content, provider: provider, targets: [target]), bundle: bundle, now: now)
    }

    @Test func `the size is that of the body for APNs, and of the limited members for FCM`() throws {
        let content = Content(title: "Hi", body: "Yo", data: ["n": 1])
        let apns = Self.preview(content, .apns)
        #expect(
            try apns.request.get().body == Array(#"{"aps":{"alert":{"body":"Yo","title":"Hi"}},"data":{"n":1}}"#.utf8))
        #expect(apns.size == 59 && apns.limit == 4096 && apns.rejectionReason == nil)
        let fcm = Self.preview(content, .fcm)
        // {"body":"Yo","title":"Hi"} and {"n":"1"}
        #expect(fcm.size == 26 + 9 && fcm.limit == 4096)
        let text = String(decoding: try fcm.request.get().body, as: UTF8.self)
        #expect(text.hasPrefix(#"{"message":{"token":"REGISTRATION-TOKEN","#))
    }

    @Test(arguments: Provider.allCases) func `a content that is too large is rejected with its size`(
        provider: Provider
    ) {
        let preview = Self.preview(Content(body: String(repeating: "a", count: 5000)), provider)
        #expect(preview.rejectionReason == "payload-too-large")
        guard provider != .webpush else {
            // Its message is too large before it is rendered.
            #expect(preview.size == nil)
            return
        }
        #expect(preview.size.map { $0 > 5000 && $0 < 5100 } == true && preview.limit == 4096)
    }

    @Test func `a call has a higher limit, and an invalid content has no size`() {
        let call = Content(
            data: ["a": .string(String(repeating: "a", count: 4500))], apns: .init(headers: ["apns-push-type": "voip"]))
        #expect(Self.preview(call, .apns).limit == 5120 && Self.preview(call, .apns).rejectionReason == nil)
        let reserved = Self.preview(Content(body: "a", data: ["aps": 1]), .apns)
        #expect(reserved.size == nil && reserved.rejectionReason == "data-key-aps-reserved")
        let misspelt = Self.preview(Content(body: "a", fcm: .init(message: ["androd": [:]])), .fcm)
        #expect(misspelt.size == nil && misspelt.rejectionReason == "fcm-unknown-member:androd")
    }

    @Test func `a topic is checked against the bundle id if that is known`() throws {
        let headers = ["apns-push-type": "voip", "apns-topic": "org.example.voip"]
        let call = Content(data: ["a": 1], apns: .init(headers: headers))
        #expect(Self.preview(call, .apns, bundle: "org.example").rejectionReason == nil)
        #expect(Self.preview(call, .apns, bundle: "org.other").rejectionReason == "topic-not-of-this-app")
        #expect(try Self.preview(call, .apns).request.get().headers.contains("apns-topic: org.example.voip"))
        let alert = try Self.preview(Content(body: "a"), .apns).request.get()
        #expect(alert.headers.contains("apns-topic: \(PayloadPreview.unknownBundle)"))
    }

    @Test func `a channel, a topic and a condition are previewed as one request`() throws {
        let state: JSONValue = ["aps": ["event": "update", "timestamp": 1_767_225_600, "content-state": ["n": 1]]]
        let update = Content(
            apns: .init(headers: ["apns-push-type": "liveactivity"], payload: state))
        func preview(_ destination: Broadcast.Destination, _ content: Content) throws -> PayloadPreview.Request {
            let broadcast = Broadcast(notification: UUID(), to: destination)
            let target = broadcast.target(in: Push.sample(content).app, at: Self.now)
            let push = Push.sample(content, provider: broadcast.provider, targets: [target])
            let preview = PayloadPreview(push, bundle: "org.example", now: Self.now)
            #expect(preview.limit == (broadcast.provider == .apns ? 5120 : 4096))
            return try preview.request.get()
        }
        let channel = try preview(.channel(try #require(ChannelID(rawValue: "dHN0")), .development), update)
        #expect(channel.path == "/4/broadcasts/apps/org.example")
        #expect(
            channel.headers == [
                "apns-channel-id: dHN0", "apns-push-type: liveactivity", "apns-priority: 10", "apns-expiration: 0",
            ])
        #expect(
            String(decoding: channel.body, as: UTF8.self)
                == #"{"aps":{"content-state":{"n":1},"event":"update","timestamp":1767225600}}"#)
        let topic = try preview(.topic(try #require(FCMTopic(rawValue: "team-red"))), Content(body: "Hi"))
        #expect(String(decoding: topic.body, as: UTF8.self).hasPrefix(#"{"message":{"topic":"team-red","#))
        let both = try #require(FCMCondition(rawValue: "'red' in topics && 'blue' in topics"))
        let condition = try preview(.condition(both), Content(body: "Hi"))
        #expect(
            String(decoding: condition.body, as: UTF8.self)
                .hasPrefix(#"{"message":{"condition":"'red' in topics && 'blue' in topics","#))
    }

    @Test func `an invalid broadcast has the sender's rejection reason`() throws {
        let start: JSONValue = [
            "aps": [
                "event": "start", "timestamp": 1_767_225_600, "content-state": ["n": 1], "attributes-type": "A",
                "attributes": [:], "alert": ["title": "T"],
            ]
        ]
        let channel = try #require(ChannelID(rawValue: "dHN0"))
        let broadcast = Broadcast(notification: UUID(), to: .channel(channel, .production))
        func refusal(_ content: Content) -> String? {
            let target = broadcast.target(in: Push.sample(content).app, at: Self.now)
            return PayloadPreview(.sample(content, targets: [target]), bundle: "org.example", now: Self.now)
                .rejectionReason
        }
        #expect(
            refusal(Content(apns: .init(headers: ["apns-push-type": "liveactivity"], payload: start)))
                == "broadcast-cannot-start-a-live-activity")
        let alert = Content(body: "a", apns: .init(headers: ["apns-push-type": "alert"]))
        #expect(refusal(alert) == "broadcast-not-liveactivity")
    }
}
