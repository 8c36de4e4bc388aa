import Foundation
import Testing

@testable import PushProtocol

/// The wire form of audiences, and invalid audiences.
@Suite struct AudienceGoldenTests {
    typealias Golden = MessageGoldenTests
    static let campaign = UUID(uuidString: "44444444-4444-5444-8444-444444444444")!

    static func name(_ text: String) -> GroupName { GroupName(rawValue: text)! }

    @Test(arguments: ["everyone", "topic", "tag", "users"])
    func `notification to an audience version 1`(name: String) throws {
        let users = ["457", "458"].compactMap(UserID.init(rawValue:))
        let audience: Audience =
            switch name {
            case "everyone":
                Audience(
                    campaign: Self.campaign, members: .everyone,
                    devices: DeviceFilter(
                        platform: [.apple, .web], locale: ["de", "fr-CH"], timeZone: ["Europe/Zurich"],
                        appVersion: .init(from: AppVersion(rawValue: "4.2"), until: AppVersion(rawValue: "5")),
                        lastSeen: .init(
                            after: Timestamp(milliseconds: 1_767_220_000_000),
                            before: Timestamp(milliseconds: 1_767_225_600_000))),
                    rate: 500)
            case "topic": Audience(campaign: Self.campaign, members: .group(.topic(Self.name("photos"))))
            case "tag": Audience(campaign: Self.campaign, members: .group(.tag(Self.name("beta"))))
            default: Audience(campaign: Self.campaign, members: .users(users, part: 2, of: 3))
            }
        try Golden.check(
            "notification.\(name).v1.json",
            PushProtocol.Notification(
                trace: Golden.trace, app: Golden.app, rule: "chat-message", lane: .bulk, content: Golden.content,
                expiresAt: Timestamp(milliseconds: 1_767_225_600_000), recipients: [], audience: audience))
    }

    @Test(arguments: ["subscribe", "unsubscribe", "tag", "untag"])
    func `device command for a group version 1`(verb: String) throws {
        let group = verb.hasSuffix("tag") ? UserGroup.tag(Self.name("beta")) : .topic(Self.name("photos"))
        let at = ["subscribe", "untag"].contains(verb) ? Timestamp(milliseconds: 1_767_225_000_000) : nil
        let change = MembershipChange(
            user: UserID(rawValue: "457")!, group: group, joins: ["subscribe", "tag"].contains(verb), at: at)
        let message = DeviceCommand(trace: Golden.trace, app: Golden.app, command: .membership(change))
        try Golden.check("device-command.\(verb).v1.json", message)
        #expect(message.routingKey == "command.\(verb).\(message.app)")
    }

    @Test(arguments: [
        (#""to": "everyone""#, #""to": "someone""#, "audience.to"),
        (#""rate": 500"#, #""rate": 0"#, "audience.rate"),
        (#""from": "4.2""#, #""from": "4.x""#, "audience.devices.appVersion.from"),
        (
            #""recipients": []"#,
            #""recipients": [{"user": "1", "notification": "44444444-4444-5444-8444-444444444444"}]"#, "audience"
        ),
        (#""to": "everyone""#, #""to": "topic""#, "audience.topic"),
        (#""to": "everyone""#, #""to": "topic", "topic": "a b""#, "audience.topic"),
        (#""to": "everyone""#, #""to": "users", "users": [], "part": 3, "of": 2"#, "audience.part"),
        // Misspelled criteria must not widen the audience.
        (#""devices""#, #""device""#, "audience.device"),
        (#""locale""#, #""language""#, "audience.devices.language"),
        (#""until""#, #""to""#, "audience.devices.appVersion.to"),
        (#""after""#, #""since""#, "audience.devices.lastSeen.since"),
    ])
    func `an invalid audience is rejected with the member's name`(good: String, bad: String, path: String) throws {
        var text = String(decoding: try Golden.bytes("notification.everyone.v1.json"), as: UTF8.self)
        text.replace(good, with: bad)
        let error = #expect(throws: WireError.self) {
            _ = try PushProtocol.Notification.decode(wireBody: Array(text.utf8))
        }
        let message = error.map { "\($0)" } ?? ""
        #expect(message.hasPrefix("\(path) is"), "\(message)")
    }

    @Test(arguments: ["0f1e2d", "cGhvbmUtb2YtYmVydG9sdA", "phone-1"])
    func `an unknown member that may be a token is not quoted`(token: String) throws {
        var text = String(decoding: try Golden.bytes("notification.everyone.v1.json"), as: UTF8.self)
        text.replace("\"locale\"", with: "\"\(token)\"")
        let error = #expect(throws: WireError.self) {
            _ = try PushProtocol.Notification.decode(wireBody: Array(text.utf8))
        }
        let message = error.map { "\($0)" } ?? ""
        #expect(message.hasPrefix("audience.devices is invalid: has an unknown member; known are"), "\(message)")
        #expect(!message.contains(token))
    }

    @Test func `a notification without recipients is rejected`() throws {
        var text = String(decoding: try Golden.bytes("notification.topic.v1.json"), as: UTF8.self)
        text.replace("\"recipients\"", with: "\"others\"")
        _ = try PushProtocol.Notification.decode(wireBody: Array(text.utf8))
        text.replace("\"audience\"", with: "\"nobody\"")
        #expect(throws: WireError.missing(path: "recipients")) {
            _ = try PushProtocol.Notification.decode(wireBody: Array(text.utf8))
        }
    }

    @Test func `app versions have numbers only`() {
        for good in ["1", "1.2.3", "0.0", "999999999.1"] { #expect(AppVersion(rawValue: good) != nil, "\(good)") }
        for bad in ["", ".", "1.", "v1", "1.2b", "1..2", "1234567890", "1.1.1.1.1.1.1.1.1", "１"] {
            #expect(AppVersion(rawValue: bad) == nil, "\(bad)")
        }
    }
}
