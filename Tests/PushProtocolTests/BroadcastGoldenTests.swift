import Foundation
import PushProtocol
import Testing

/// The wire form of broadcasts and scopes.
@Suite struct BroadcastGoldenTests {
    typealias Golden = MessageGoldenTests
    static let id = UUID(uuidString: "44444444-4444-5444-8444-444444444444")!
    static let destination: [String: Broadcast.Destination] = [
        "channel": .channel(ChannelID(rawValue: "dHN0LXNyY2gtY2hubA==")!, .development),
        "fcm-topic": .topic(FCMTopic(rawValue: "news~de")!),
        "fcm-condition": .condition(FCMCondition(rawValue: "'a' in topics && !('b' in topics)")!),
    ]

    @Test(arguments: ["channel", "fcm-topic", "fcm-condition"])
    func `notification to a broadcast version 1`(name: String) throws {
        try Golden.check(
            "notification.\(name).v1.json",
            PushProtocol.Notification(
                trace: Golden.trace, app: Golden.app, rule: "score", lane: .interactive, content: Content(body: "2:1"),
                recipients: [], broadcast: Broadcast(notification: Self.id, to: try #require(Self.destination[name]))))
    }

    @Test func `notification with a scope version 1`() throws {
        try Golden.check(
            "notification.scope.v1.json",
            PushProtocol.Notification(
                trace: Golden.trace, app: Golden.app, rule: "score", lane: .interactive, content: Content(body: "2:1"),
                scope: "match-17", recipients: [.init(user: UserID(rawValue: "457")!, notification: Self.id)]))
    }

    @Test(arguments: [
        (#""to": "channel""#, #""to": "radio""#, "broadcast.to"),
        (#""channel": "dHN0LXNyY2gtY2hubA==""#, #""channel": "not base64""#, "broadcast.channel"),
        (#""environment": "development""#, #""environment": "space""#, "broadcast.environment"),
        (
            #""recipients": []"#,
            #""recipients": [{"user": "1", "notification": "44444444-4444-5444-8444-444444444444"}]"#, "broadcast"
        ),
        (
            #""recipients": []"#,
            #""recipients": [], "audience": {"campaign": "44444444-4444-5444-8444-444444444444", "to": "everyone"}"#,
            "audience"
        ),
    ])
    func `an invalid broadcast is rejected with the member's name`(old: String, new: String, path: String) throws {
        let text = String(decoding: try Golden.bytes("notification.channel.v1.json"), as: UTF8.self)
        #expect(text.contains(old))
        let error = #expect(throws: WireError.self) {
            _ = try PushProtocol.Notification.decode(wireBody: Array(text.replacing(old, with: new).utf8))
        }
        #expect(error?.description.contains(path) == true, "\(error.map(String.init(describing:)) ?? "")")
    }

    @Test func `a broadcast's target is stable and has the provider's address`() {
        for (_, destination) in Self.destination {
            let one = Broadcast(notification: Self.id, to: destination)
            let target = one.target(in: Golden.app, at: Timestamp(milliseconds: 1))
            #expect(target.device == one.target(in: Golden.app, at: .now).device)
            #expect(target.notification == Self.id && target.address != nil && target.address != .fid)
        }
        let devices = Self.destination.values.map {
            Broadcast(notification: Self.id, to: $0).target(in: Golden.app, at: .now).device
        }
        #expect(Set(devices).count == 3)
    }

    @Test(arguments: [
        ("'a' in topics", true), ("'a' in topics || 'b' in topics", true), ("!('a' in topics)", true),
        ("a in topics", false),
        ("'a' in topics &&", false), ("'a b' in topics", false), ("", false),
        ((0..<6).map { "'\($0)' in topics" }.joined(separator: " || "), false),
    ])
    func `a condition is validated like in FCM`(text: String, isOne: Bool) {
        #expect((FCMCondition(rawValue: text) != nil) == isOne)
    }
}
