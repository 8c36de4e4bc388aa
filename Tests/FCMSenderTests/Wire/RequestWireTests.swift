import FoundationEssentials
import Messaging
import Providers
import PushProtocol
import PushSending
import Testing
import TestSupport

@testable import FCMSender

/// The request vectors F01 to F16, sent to the simulator, which validates messages like FCM.
@Suite(.timeLimit(.minutes(2))) struct RequestWireTests {
    /// A vector: a push to one target, and the expected body or rejection.
    struct Vector: Sendable {
        let name: String
        let content: Content
        let target: Push.Target
        let lifetime: Duration?
        let expected: Expected

        enum Expected: Sendable {
            /// The whole body.
            case body(JSONValue)
            /// Members of the message; others may be present.
            case holds(JSONValue)
            case rejected(String)
        }

        init(
            _ name: String, _ content: Content, to target: Push.Target = .ft1, lifetime: Duration? = nil,
            _ expected: Expected
        ) {
            self.name = name
            self.content = content
            self.target = target
            self.lifetime = lifetime
            self.expected = expected
        }
    }

    /// A content of the given message only, with rendered platform members removed.
    private static func only(_ message: JSONValue, title: String? = nil, body: String? = nil) -> Content {
        let bare: JSONValue = ["android": nil, "apns": nil]
        return Content(title: title, body: body, fcm: FCMOverride(message: bare.merging(message)))
    }

    static let vectors: [Vector] = [
        Vector(
            "F01", only([:], title: "T", body: "B"),
            .body(["message": ["token": "fcmTok_1:APA91bExample", "notification": ["title": "T", "body": "B"]]])),
        Vector(
            "F02", Content(body: "B", data: ["n": 42, "b": true]), .holds(["data": ["n": "42", "b": "true"]])),
        Vector(
            "F03",
            Content(body: "B", silent: true, collapseKey: "k", fcm: .init(message: ["android": ["priority": "high"]])),
            lifetime: .seconds(3600),
            .holds(["android": ["priority": "high", "ttl": "3600s", "collapse_key": "k"]])),
        Vector(
            "F04", only(["android": ["ttl": "1.5s"]], body: "B"), .holds(["android": ["ttl": "1.5s"]])),
        Vector("F05", only(["android": ["ttl": "0s"]], body: "B"), .holds(["android": ["ttl": "0s"]])),
        Vector(
            "F06", only([:], body: "B"), to: .sample(token: "/topics/news", address: .topic),
            .body(["message": ["topic": "news", "notification": ["body": "B"]]])),
        Vector(
            "F07", only([:], body: "B"),
            to: .sample(token: "'a' in topics && !('b' in topics)", address: .condition),
            .body(["message": ["condition": "'a' in topics && !('b' in topics)", "notification": ["body": "B"]]])),
        Vector("F08 both", only(["topic": "news"], body: "B"), .rejected("fcm-not-for-content:topic")),
        Vector("F08 none", only([:], body: "B"), to: .sample(token: ""), .rejected("malformed-token")),
        Vector(
            "F09", only(["apns": ["headers": ["apns-priority": "5"], "payload": ["aps": ["badge": 0]]]]),
            .holds(["apns": ["headers": ["apns-priority": "5"], "payload": ["aps": ["badge": 0]]]])),
        Vector(
            "F10",
            Content(body: "B", fcm: FCMOverride(message: ["android": nil, "apns": nil], validateOnly: true)),
            .body([
                "validate_only": true,
                "message": ["token": "fcmTok_1:APA91bExample", "notification": ["body": "B"]],
            ])),
        Vector(
            "F11",
            only([
                "android": [
                    "notification": [
                        "channelId": "c", "color": "#ff0000", "notificationPriority": "PRIORITY_HIGH",
                        "visibility": "PUBLIC", "event_time": "2026-01-01T00:00:00Z",
                        "vibrate_timings": ["0.1s", "0.2s"],
                    ]
                ]
            ]),
            .holds([
                "android": [
                    "notification": [
                        "channel_id": "c", "color": "#ff0000", "notification_priority": "PRIORITY_HIGH",
                        "visibility": "PUBLIC", "event_time": "2026-01-01T00:00:00Z",
                        "vibrate_timings": ["0.1s", "0.2s"],
                    ]
                ]
            ])),
        Vector(
            "F12", only([:], body: "B"), to: .sample(token: "f1", address: .fid),
            .body(["message": ["fid": "f1", "notification": ["body": "B"]]])),
        Vector("F13 from", Content(data: ["from": "v"]), .rejected("fcm-reserved-data-key:data")),
        Vector("F13 message_type", Content(data: ["message_type": "v"]), .rejected("fcm-reserved-data-key:data")),
        Vector("F13 google.x", Content(data: ["google.x": "v"]), .rejected("fcm-reserved-data-key:data")),
        Vector(
            "F13 gcm.x", only(["android": ["data": ["gcm.x": "v"]]]), .rejected("fcm-reserved-data-key:android.data")),
        Vector(
            "F13 collapse_key", Content(data: ["collapse_key": "v"]), .holds(["data": ["collapse_key": "v"]])),
        Vector(
            "F15",
            Content(fcm: .init(message: ["apns": ["live_activity_token": "L", "payload": ["aps": ["event": "end"]]]])),
            .holds(["apns": ["live_activity_token": "L", "payload": ["aps": ["event": "end"]]]])),
        Vector(
            "F16", only(["webpush": ["headers": ["TTL": "15"], "fcm_options": ["link": "http://x"]]], body: "B"),
            .rejected("fcm-not-https:webpush.fcm_options.link")),
        Vector(
            "F16 with https",
            only(["webpush": ["headers": ["TTL": "15"], "fcm_options": ["link": "https://x"]]], body: "B"),
            .holds(["webpush": ["headers": ["TTL": "15"], "fcm_options": ["link": "https://x"]]])),
    ]

    @Test func `F01 to F13, F15, F16: valid messages are sent as expected and invalid ones are not sent`() async throws
    {
        try await SimulatedGoogle.run { google in
            let sender = try await SenderUnderTest(google)
            for vector in Self.vectors {
                try await google.forget()
                let expiresAt = vector.lifetime.map { sender.time.clock.now() + $0 }
                let push = Push.sample(
                    vector.content, provider: .fcm, expiresAt: expiresAt, targets: [vector.target])
                let result = try await sender.send(push)
                #expect(result.disposition == .done, "\(vector.name)")
                let sends = try await google.sends()
                try await Self.check(vector, result, sends)
                // The preview of the same push.
                let preview = PayloadPreview(push, now: sender.time.clock.now())
                switch vector.expected {
                case .rejected(let reason): #expect(preview.rejectionReason == reason, "\(vector.name)")
                case .body, .holds:
                    let shown = try WireCoding.decode(JSONValue.self, from: try preview.request.get().body)
                    #expect(shown == sends.first?["body"], "\(vector.name)")
                }
            }
            #expect(sender.trouble == nil)
            await sender.stop()
        }
    }

    private static func check(
        _ vector: Vector, _ result: SenderUnderTest.Result, _ sends: [JSONValue]
    ) async throws {
        if case .rejected(let reason) = vector.expected {
            let isAboutToken = reason == "malformed-token"
            #expect(result.answers == [.rejected(reason: reason, suspectToken: isAboutToken)], "\(vector.name)")
            #expect(sends.isEmpty, "\(vector.name)")
            return
        }
        #expect(result.answers.map(\.disposition) == [.accepted], "\(vector.name): \(result.answers)")
        let request = try #require(sends.first, "\(vector.name)")
        #expect(sends.count == 1, "\(vector.name)")
        #expect(request["method"] == "POST" && request["path"] == "/v1/projects/demo-project/messages:send")
        #expect(request[path: "headers.content-type"] == "application/json")
        #expect(request[path: "headers.authorization"]?.string?.hasPrefix("Bearer ") == true)
        let body = try #require(request["body"])
        switch vector.expected {
        case .body(let expected): #expect(body == expected, "\(vector.name)")
        case .holds(let part):
            // Merging members that are present changes nothing.
            #expect(body["message"]?.merging(part) == body["message"], "\(vector.name): \(body)")
            #expect(body[path: "message.token"] == .string(vector.target.token.secret), "\(vector.name)")
        case .rejected: break
        }
    }

    @Test func `F10: a dry run returns FCM's placeholder id`() async throws {
        try await SimulatedGoogle.run { google in
            let sender = try await SenderUnderTest(google)
            let result = try await sender.send(
                .sample(Content(body: "B", fcm: FCMOverride(validateOnly: true)), provider: .fcm, targets: [.ft1]))
            #expect(result.answers == [.accepted(id: "fake_message_id")])
            await sender.stop()
        }
    }

    @Test func `F14: three tokens are three requests with separate outcomes`() async throws {
        try await SimulatedGoogle.run { google in
            let sender = try await SenderUnderTest(google)
            let tokens = ["sim:OK:1:a", "sim:UNREGISTERED:1:b", "sim:OK:1:c"]
            let result = try await sender.send(
                .sample(provider: .fcm, targets: tokens.map { .sample(token: $0) }))
            #expect(result.disposition == .done)
            #expect(result.answers.map(\.disposition) == [.accepted, .unregistered, .accepted])
            let sent = try await google.sends().compactMap { $0["token"]?.string }
            #expect(sent.sorted() == tokens.sorted())
            await sender.stop()
        }
    }

    @Test func `a content with all members, neutral and overridden, is accepted by the simulator`() async throws {
        try await SimulatedGoogle.run { google in
            let sender = try await SenderUnderTest(google)
            let content = Content(
                title: "T", subtitle: "S", body: "B", badge: 3, sound: "default", category: "c", thread: "t",
                deepLink: "app://x", image: "https://e.org/i.png", data: ["n": 1], interruptionLevel: .critical,
                collapseKey: "k", fcm: FCMOverride(message: FCMVectors.everything))
            let result = try await sender.send(
                .sample(content, provider: .fcm, expiresAt: sender.time.clock.now() + .seconds(60), targets: [.ft1]))
            #expect(result.answers.map(\.disposition) == [.accepted])
            await sender.stop()
        }
    }
}

extension Push.Target {
    /// The vectors' token `FT1`.
    static var ft1: Push.Target { .sample(token: "fcmTok_1:APA91bExample") }
}
