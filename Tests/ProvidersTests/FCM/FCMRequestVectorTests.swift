import FoundationEssentials
import PushProtocol
import Testing
import TestSupport

@testable import Providers

/// The FCM request vectors that a push can express.
@Suite struct FCMRequestVectorTests {
    private let codec = FCMCodec(project: "demo-project")
    private let target = Push.Target.sample(token: "fcmTok_1:APA91bExample")

    private func message(_ content: Content, expiresAt: Timestamp? = nil) throws -> JSONValue {
        let push = Push.sample(content, provider: .fcm, expiresAt: expiresAt, targets: [target])
        let request = try codec.request(to: target, from: codec.render(push, now: .sample))
        #expect(request.path == "/v1/projects/demo-project/messages:send")
        #expect(request.headers == [ProviderHeader("content-type", "application/json")])
        let body = try WireCoding.decode(JSONValue.self, from: request.body)
        #expect(body.object?.keys.sorted() == ["message"])
        return try #require(body["message"])
    }

    private func rejection(_ content: Content) -> LocalRejection? {
        let push = Push.sample(content, provider: .fcm, targets: [target])
        do throws(LocalRejection) {
            _ = try codec.request(to: target, from: codec.render(push, now: .sample))
            return nil
        } catch {
            return error
        }
    }

    private var id: JSONValue { .string(target.notification.uuidString.lowercased()) }

    @Test func `F01: title and body for one token, with a tag and collapse id for duplicates`() throws {
        #expect(
            try message(Content(title: "T", body: "B")) == [
                "token": "fcmTok_1:APA91bExample", "notification": ["title": "T", "body": "B"],
                "android": ["priority": "HIGH", "notification": ["tag": id]],
                "apns": ["headers": ["apns-collapse-id": id]],
            ])
    }

    @Test func `F02: data is a string map; other values become their JSON text`() throws {
        let content = Content(
            body: "B", deepLink: "app://x/1",
            data: ["n": 42, "b": true, "s": "x", "o": ["k": [1, nil]], "d": 0.5, "z": nil])
        #expect(
            try message(content)["data"] == [
                "n": "42", "b": "true", "s": "x", "o": #"{"k":[1,null]}"#, "d": "0.5", "z": "null",
                "deep_link": "app://x/1",
            ])
    }

    @Test func `F03 F05: the expiration becomes a ttl of whole seconds, up to four weeks`() throws {
        for (ttl, text) in [(3600, "3600s"), (0, "0s"), (-5, "0s"), (10_000_000, "2419200s")] {
            let message = try message(Content(body: "B"), expiresAt: .sample + .seconds(ttl))
            #expect(message[path: "android.ttl"] == .string(text))
        }
        #expect(try message(Content(body: "B"))[path: "android.ttl"] == nil)
    }

    @Test func `the expiration becomes a Web Push TTL, unless the content has one`() throws {
        let content = Content(title: "T", body: "B")
        let soon = Timestamp.sample + .seconds(90)
        #expect(try message(content, expiresAt: soon)["webpush"] == ["headers": ["TTL": "90"]])
        #expect(try message(content)["webpush"] == nil)
        for name in ["TTL", "ttl"] {
            var own = content
            own.fcm = FCMOverride(message: ["webpush": ["headers": [name: "5"]]])
            #expect(
                try message(own, expiresAt: soon)["webpush"] == ["headers": .object([name: "5"])])
        }
    }

    @Test func `a collapse id for Apple is limited to 64 bytes of UTF-8`() {
        func problem(_ id: String, name: String = "apns-collapse-id") -> String? {
            let headers = JSONValue.object([name: .string(id)])
            return rejection(Content(body: "B", fcm: FCMOverride(message: ["apns": ["headers": headers]])))?.reason
        }
        #expect(problem(String(repeating: "é", count: 32)) == nil)
        #expect(
            problem(String(repeating: "é", count: 33)) == "fcm-not-1-to-64-bytes:apns.headers.apns-collapse-id")
        #expect(
            problem("a\nb", name: "Apns-Collapse-Id") == "fcm-not-a-header-value:apns.headers.apns-collapse-id")
        #expect(rejection(Content(body: "B", collapseKey: "a\nb"))?.reason == "collapse-id-not-a-header-value")
    }

    @Test func `a background push displays nothing on either platform`() throws {
        let content = Content(
            title: "T", body: "B", badge: 1, sound: "s", data: ["k": "v"], silent: true, collapseKey: "sync")
        #expect(
            try message(content) == [
                "token": "fcmTok_1:APA91bExample", "data": ["k": "v"],
                "android": ["priority": "NORMAL", "collapse_key": "sync"],
                "apns": [
                    "headers": ["apns-collapse-id": "sync", "apns-priority": "5", "apns-push-type": "background"],
                    "payload": ["aps": ["content-available": 1]],
                ],
            ])
    }

    @Test func `neutral members are rendered for each platform`() throws {
        let content = Content(
            title: "T", subtitle: "S", body: "B", badge: 3, sound: "default", category: "c", thread: "t",
            image: "https://e.org/i.png", interruptionLevel: .timeSensitive, collapseKey: "k")
        let message = try message(content)
        #expect(message["notification"] == ["title": "T", "body": "B", "image": "https://e.org/i.png"])
        #expect(
            message[path: "android.notification"] == [
                "tag": "k", "channel_id": "c", "sound": "default", "notification_count": 3,
                "notification_priority": "PRIORITY_HIGH",
            ])
        #expect(
            message[path: "apns.payload.aps"] == [
                "alert": ["title": "T", "subtitle": "S", "body": "B"], "badge": 3, "sound": "default",
                "category": "c", "thread-id": "t", "interruption-level": "time-sensitive", "mutable-content": 1,
            ])
    }

    @Test func `F11: the content's fcm message is merged into the rendering`() throws {
        let content = Content(
            body: "B",
            fcm: FCMOverride(message: [
                "android": ["notification": ["channel_id": "c", "color": "#ff0000"]],
                "fcm_options": ["analytics_label": "l"],
            ]))
        let message = try message(content)
        #expect(message[path: "android.notification"] == ["tag": id, "channel_id": "c", "color": "#ff0000"])
        #expect(message[path: "fcm_options.analytics_label"] == "l")
        #expect(message[path: "android.priority"] == "HIGH")
    }

    @Test func `a category is the Android channel, unless the content's fcm message has another or none`() throws {
        func channel(_ own: JSONValue?, silent: Bool = false) throws -> JSONValue? {
            let message: JSONValue? = own.map { ["android": ["notification": ["channel_id": $0]]] }
            let content = Content(
                body: "B", category: "new \"orders\"", silent: silent,
                fcm: message.map { FCMOverride(message: $0) })
            return try self.message(content)[path: "android.notification.channel_id"]
        }
        #expect(try channel(nil) == "new \"orders\"")
        #expect(try channel("kitchen") == "kitchen")
        #expect(try channel(.null) == nil)
        #expect(try channel(nil, silent: true) == nil)
    }

    @Test func `a token with JSON syntax characters stays one string`() throws {
        let odd = Push.Target.sample(token: #"a"b\c{}"#)
        let push = Push.sample(provider: .fcm, targets: [odd])
        let request = try codec.request(to: odd, from: codec.render(push, now: .sample))
        let body = try WireCoding.decode(JSONValue.self, from: request.body)
        #expect(body[path: "message.token"] == #"a"b\c{}"#)
    }

    @Test func `a message is encoded once for each badge and completed for each target`() throws {
        let targets = (0..<500).map { Push.Target.sample(token: "t\($0)", badge: $0 % 2 == 0 ? 1 : 2) }
        let push = Push.sample(provider: .fcm, targets: targets)
        let rendering = FCMRendering(push, now: .sample)
        guard case .byBadge(let messages) = rendering.messages else {
            Issue.record("one message for all")
            return
        }
        #expect(messages.count == 2)
        for target in targets {
            let body = try WireCoding.decode(
                JSONValue.self, from: try codec.request(to: target, from: rendering).body)
            #expect(body[path: "message.token"]?.string == target.token.secret)
            #expect(
                body[path: "message.android.notification.tag"]?.string == target.notification.uuidString.lowercased())
            #expect(body[path: "message.apns.payload.aps.badge"]?.int == target.badge.map(Int64.init))
        }
    }

    @Test(arguments: ["from", "message_type", "google.x", "gcm.x", "gcm.notification.y", "googleMaps"])
    func `F13: reserved data keys are rejected`(key: String) {
        #expect(rejection(Content(body: "B", data: [key: "v"]))?.reason == "fcm-reserved-data-key:data")
    }

    @Test func `F13: collapse_key is not reserved`() {
        #expect(rejection(Content(body: "B", data: ["collapse_key": "v"])) == nil)
    }

    @Test func `F04: a ttl may have a fraction`() {
        #expect(rejection(Content(body: "B", fcm: .init(message: ["android": ["ttl": "1.500000000s"]]))) == nil)
    }

    @Test func `notification and data may have 4096 bytes and no more`() {
        let frame = #"{"body":""}"#.utf8.count
        #expect(rejection(Content(body: String(repeating: "a", count: 4096 - frame))) == nil)
        #expect(
            rejection(Content(body: String(repeating: "a", count: 4097 - frame)))?.reason == "payload-too-large")
    }
}
