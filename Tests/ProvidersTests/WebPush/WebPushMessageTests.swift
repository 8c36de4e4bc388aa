import PushProtocol
import Testing

@testable import Providers

/// The JSON that browsers show.
@Suite struct WebPushMessageTests {
    private static let id = WebPushMessage.notificationIDPlaceholder

    private static func rendered(
        _ content: Content, badge: Int? = nil, _ message: JSONValue? = nil
    ) throws(LocalRejection) -> JSONValue {
        let site = try! WebPushSite("https://app.example/home")
        var content = content
        content.web = message.map { WebPushOverride(message: $0) }
        return try WebPushMessage(content: content, badge: badge, site: site).rendered
    }

    private static func rejection(_ content: Content, _ message: JSONValue? = nil) -> String? {
        do throws(LocalRejection) {
            _ = try rendered(content, message)
            return nil
        } catch {
            return error.reason
        }
    }

    @Test func `a notification is a declarative push message`() throws {
        #expect(
            try Self.rendered(Content(title: "T", body: "B", deepLink: "https://app.example/orders/1")) == [
                "web_push": 8030,
                "notification": [
                    "title": "T", "body": "B", "navigate": "https://app.example/orders/1", "tag": .string(Self.id),
                    "data": ["deep_link": "https://app.example/orders/1"],
                ],
            ])
    }

    @Test func `all members of the content have their place`() throws {
        let content = Content(
            title: "T", subtitle: "S", body: "B", badge: 3, deepLink: "/orders/1", image: "https://app.example/a.png",
            data: ["n": 1, "z": nil], interruptionLevel: .critical, collapseKey: "order/1")
        #expect(
            try Self.rendered(content) == [
                "web_push": 8030, "app_badge": 3,
                "notification": [
                    "title": "T", "body": "S\nB", "navigate": "https://app.example/orders/1", "tag": "order/1",
                    "renotify": true, "requireInteraction": true, "image": "https://app.example/a.png",
                    "app_badge": "3", "data": ["n": 1, "z": nil, "deep_link": "/orders/1"],
                ],
            ])
    }

    @Test func `given texts without a title, the first text is the title`() throws {
        let message = try Self.rendered(Content(body: "B"))
        #expect(message[path: "notification.title"] == "B")
        #expect(message[path: "notification.body"] == nil)
        let other = try Self.rendered(Content(title: "", subtitle: "S", body: "B"))
        #expect(other[path: "notification.title"] == "S")
        #expect(other[path: "notification.body"] == "B")
    }

    @Test func `the badge of the target takes precedence, and 0 clears it`() throws {
        let message = try Self.rendered(Content(title: "T", badge: 3), badge: 0)
        #expect(message["app_badge"] == 0)
        #expect(message[path: "notification.app_badge"] == "0")
    }

    @Test func `a passive notification is silent, and does not sound again`() throws {
        let message = try Self.rendered(Content(title: "T", interruptionLevel: .passive, collapseKey: "k"))
        #expect(message[path: "notification.silent"] == true)
        #expect(message[path: "notification.renotify"] == nil)
    }

    @Test(
        arguments: [
            (nil, "https://app.example/home"), ("app://orders/1", "https://app.example/home"),
            ("orders/1", "https://app.example/home"), ("javascript:alert(1)", "https://app.example/home"),
            ("/orders?id=1", "https://app.example/orders?id=1"),
            ("//evil.example", "https://app.example//evil.example"),
            ("https://other.example/x", "https://other.example/x"),
        ] as [(String?, String)]) func `the URL to open is one that a browser opens`(link: String?, url: String) throws
    {
        #expect(try Self.rendered(Content(title: "T", deepLink: link))[path: "notification.navigate"] == .string(url))
    }

    @Test func `a site's port belongs to its links`() throws {
        #expect(try WebPushSite("https://app.example:8443?x=1").url(for: "/a") == "https://app.example:8443/a")
        #expect(try WebPushSite("http://localhost:3000/x").url(for: "/a") == "http://localhost:3000/a")
        #expect(throws: (any Error).self) { try WebPushSite("app.example") }
    }

    @Test func `an override adds actions, whose URL is by default that of the notification`() throws {
        let message = try Self.rendered(
            Content(title: "T"),
            badge: 1,
            [
                "notification": [
                    "icon": "https://app.example/i.png", "app_badge": nil,
                    "actions": [
                        ["action": "ok", "title": "OK"],
                        ["action": "no", "title": "No", "navigate": "https://app.example/no"],
                    ],
                ], "mutable": true, "app_badge": nil,
            ])
        #expect(
            message == [
                "web_push": 8030, "mutable": true,
                "notification": [
                    "title": "T", "navigate": "https://app.example/home", "tag": .string(Self.id),
                    "icon": "https://app.example/i.png",
                    "actions": [
                        ["action": "ok", "title": "OK", "navigate": "https://app.example/home"],
                        ["action": "no", "title": "No", "navigate": "https://app.example/no"],
                    ],
                ],
            ])
    }

    @Test func `given no text, the notification is rejected`() {
        #expect(Self.rejection(Content()) == "notification-without-title")
        #expect(Self.rejection(Content(title: "", body: "")) == "notification-without-title")
    }

    @Test func `a background push is rejected, because browsers show every push`() {
        #expect(Self.rejection(Content(silent: true)) == "silent-push-not-for-web-push")
        #expect(Self.rejection(Content(title: "T", silent: true)) == "silent-push-not-for-web-push")
    }

    @Test(arguments: [
        ("[]", "web-push-message-not-an-object"), (#"{"web_push":1}"#, "web-push-marker-changed"),
        (#"{"web_push":null}"#, "web-push-marker-changed"), (#"{"notification":7}"#, "notification-not-an-object"),
        (#"{"notification":null}"#, "notification-not-an-object"),
        (#"{"notification":{"title":null}}"#, "notification-without-title"),
        (#"{"notification":{"title":""}}"#, "notification-without-title"),
        (#"{"notification":{"title":5}}"#, "notification-without-title"),
        (#"{"notification":{"navigate":null}}"#, "notification-without-navigate"),
        (#"{"notification":{"silent":true,"vibrate":[1]}}"#, "notification-silent-and-vibrate"),
        (#"{"notification":{"renotify":true,"tag":""}}"#, "notification-renotify-without-tag"),
        (#"{"notification":{"renotify":true,"tag":null}}"#, "notification-renotify-without-tag"),
        (#"{"notification":{"actions":{}}}"#, "actions-not-a-list"),
        (#"{"notification":{"actions":[{"action":"a"}]}}"#, "action-without-action-or-title"),
        (#"{"notification":{"actions":[7]}}"#, "action-without-action-or-title"),
        (#"{"notification":{"actions":[{"action":"a","title":"A","navigate":5}]}}"#, "action-navigate-not-a-string"),
    ]) func `an override that a browser would refuse is rejected`(message: String, reason: String) throws {
        let message = try WireCoding.decode(JSONValue.self, from: Array(message.utf8))
        #expect(Self.rejection(Content(title: "T"), message) == reason)
    }
}
