import FoundationEssentials
import PushProtocol
import PushWires
import TestSupport
import Testing

/// What is shown of a push before it is sent. That it is what is sent is held where it is sent, in the senders' own tests.
@Suite struct PushProofTests {
    private static let now = Timestamp(milliseconds: 1_767_225_600_000)

    private static func proof(_ content: Content, _ provider: Provider, bundle: String? = nil) -> PushProof {
        let target = Push.Target.sample(token: PushProof.token(for: provider).secret)
        return PushProof(.sample(content, provider: provider, targets: [target]), bundle: bundle, now: now)
    }

    @Test func `of APNs the whole body counts, of FCM what the provider counts`() throws {
        let content = Content(title: "Hi", body: "Yo", data: ["n": 1])
        let apns = Self.proof(content, .apns)
        #expect(
            try apns.copy.get().body == Array(#"{"aps":{"alert":{"body":"Yo","title":"Hi"}},"data":{"n":1}}"#.utf8))
        #expect(apns.size == 59 && apns.limit == 4096 && apns.refusal == nil)
        let fcm = Self.proof(content, .fcm)
        // {"body":"Yo","title":"Hi"} and {"n":"1"}
        #expect(fcm.size == 26 + 9 && fcm.limit == 4096)
        let text = String(decoding: try fcm.copy.get().body, as: UTF8.self)
        #expect(text.hasPrefix(#"{"message":{"token":"REGISTRATION-TOKEN","#))
    }

    @Test(arguments: Provider.allCases) func `what is too large is refused, and it is told by how much`(
        provider: Provider
    ) {
        let proof = Self.proof(Content(body: String(repeating: "a", count: 5000)), provider)
        #expect(proof.refusal == "payload-too-large")
        #expect(proof.size.map { $0 > 5000 && $0 < 5100 } == true && proof.limit == 4096)
    }

    @Test func `a call may be larger, and what cannot be rendered has no size`() {
        let call = Content(
            data: ["a": .string(String(repeating: "a", count: 4500))], apns: .init(headers: ["apns-push-type": "voip"]))
        #expect(Self.proof(call, .apns).limit == 5120 && Self.proof(call, .apns).refusal == nil)
        let reserved = Self.proof(Content(body: "a", data: ["aps": 1]), .apns)
        #expect(reserved.size == nil && reserved.refusal == "data-key-aps-reserved")
        let misspelt = Self.proof(Content(body: "a", fcm: .init(message: ["androd": [:]])), .fcm)
        #expect(misspelt.size == nil && misspelt.refusal == "fcm-unknown-member:androd")
    }

    @Test func `a topic is held against the bundle id where that is known`() throws {
        let headers = ["apns-push-type": "voip", "apns-topic": "org.example.voip"]
        let call = Content(data: ["a": 1], apns: .init(headers: headers))
        #expect(Self.proof(call, .apns, bundle: "org.example").refusal == nil)
        #expect(Self.proof(call, .apns, bundle: "org.other").refusal == "topic-not-of-this-app")
        #expect(try Self.proof(call, .apns).copy.get().headers.contains("apns-topic: org.example.voip"))
        let alert = try Self.proof(Content(body: "a"), .apns).copy.get()
        #expect(alert.headers.contains("apns-topic: \(PushProof.unknownBundle)"))
    }

    @Test func `a channel, a topic and a condition are shown as what is sent to all who follow them`() throws {
        let state: JSONValue = ["aps": ["event": "update", "timestamp": 1_767_225_600, "content-state": ["n": 1]]]
        let update = Content(
            apns: .init(headers: ["apns-push-type": "liveactivity"], payload: state))
        func proof(_ followed: Broadcast.Followed, _ content: Content) throws -> PushProof.Copy {
            let broadcast = Broadcast(notification: UUID(), to: followed)
            let target = broadcast.target(in: Push.sample(content).app, at: Self.now)
            let push = Push.sample(content, provider: broadcast.provider, targets: [target])
            let proof = PushProof(push, bundle: "org.example", now: Self.now)
            #expect(proof.limit == (broadcast.provider == .apns ? 5120 : 4096))
            return try proof.copy.get()
        }
        let channel = try proof(.channel(try #require(ChannelID(rawValue: "dHN0")), .development), update)
        #expect(channel.path == "/4/broadcasts/apps/org.example")
        #expect(
            channel.headers == [
                "apns-channel-id: dHN0", "apns-push-type: liveactivity", "apns-priority: 10", "apns-expiration: 0",
            ])
        #expect(
            String(decoding: channel.body, as: UTF8.self)
                == #"{"aps":{"content-state":{"n":1},"event":"update","timestamp":1767225600}}"#)
        let topic = try proof(.topic(try #require(FCMTopic(rawValue: "team-red"))), Content(body: "Hi"))
        #expect(String(decoding: topic.body, as: UTF8.self).hasPrefix(#"{"message":{"topic":"team-red","#))
        let both = try #require(FCMCondition(rawValue: "'red' in topics && 'blue' in topics"))
        let condition = try proof(.condition(both), Content(body: "Hi"))
        #expect(
            String(decoding: condition.body, as: UTF8.self)
                .hasPrefix(#"{"message":{"condition":"'red' in topics && 'blue' in topics","#))
    }

    @Test func `what a channel does not take is refused as its sender would`() throws {
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
            return PushProof(.sample(content, targets: [target]), bundle: "org.example", now: Self.now).refusal
        }
        #expect(
            refusal(Content(apns: .init(headers: ["apns-push-type": "liveactivity"], payload: start)))
                == "broadcast-cannot-start-a-live-activity")
        let alert = Content(body: "a", apns: .init(headers: ["apns-push-type": "alert"]))
        #expect(refusal(alert) == "broadcast-not-liveactivity")
    }
}
