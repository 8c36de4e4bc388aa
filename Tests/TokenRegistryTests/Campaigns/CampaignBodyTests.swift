import Foundation
import PushProtocol
import Testing

@testable import RegistryStore

/// The body of a request that starts a campaign.
@Suite struct CampaignBodyTests {
    private static let id = UUID(uuidString: "0c0c0c0c-0000-5000-8000-000000000001")!
    private static let app = AppID(rawValue: "family-portal")!
    private static let now = Timestamp(milliseconds: 1_000_000)

    private static func notification(_ body: String) throws -> PushProtocol.Notification {
        try CampaignBody(Array(body.utf8)).notification(opening: id, of: app, at: now)
    }

    @Test func `each member has its place in the notification`() throws {
        let notification = try Self.notification(
            """
            {"tag": "beta", "content": {"title": "T", "category": "news"}, "ttl": 60, "rate": 5, "holdOut": 10,
             "devices": {"platform": ["android"], "timeZone": ["Europe/Berlin"], "appVersion": {"from": "4.2"}}}
            """)
        #expect(notification.app == Self.app && notification.lane == .bulk && notification.rule == "direct-tag")
        #expect(notification.content == Content(title: "T", category: "news"))
        #expect(notification.expiresAt == Self.now + .seconds(60) && notification.recipients.isEmpty)
        let devices = DeviceFilter(
            platform: [.android], timeZone: ["Europe/Berlin"], appVersion: .init(from: AppVersion(rawValue: "4.2")))
        #expect(
            notification.audience
                == Audience(
                    campaign: Self.id, members: .group(.tag(GroupName(rawValue: "beta")!)), devices: devices, rate: 5,
                    holdOut: 10))
    }

    @Test func `the same body gives the same notification`() throws {
        for (to, rule) in [(#""everyone": true"#, "direct-everyone"), (#""topic": "photos""#, "direct-topic")] {
            let body = #"{\#(to), "content": {"body": "B"}}"#
            let notification = try Self.notification(body)
            #expect(notification.rule == rule && notification.expiresAt == nil)
            #expect(try Self.notification(body) == notification)
            #expect(try PushProtocol.Notification.decode(wireBody: try notification.wireBody()) == notification)
        }
    }

    @Test(arguments: [
        ("[]", "the body is invalid: expected an object"),
        (#"{"content": {"body": "B"}}"#, "exactly one of topic, tag and everyone must name the audience"),
        (
            #"{"everyone": true, "tag": "a", "content": {"body": "B"}}"#,
            "exactly one of topic, tag and everyone must name the audience"
        ),
        (#"{"users": ["7"], "content": {"body": "B"}}"#, "has an unknown member; known are topic, tag, everyone"),
        (#"{"everyone": true, "at": "2026-03-31T09:00:00Z", "content": {"body": "B"}}"#, "has an unknown member"),
        (#"{"everyone": true}"#, "content is missing"),
        (#"{"everyone": true, "content": {}}"#, "content is invalid: add a title or a body"),
        (#"{"everyone": true, "content": {"body": "B", "image": "http://x"}}"#, "content.image is invalid"),
        (#"{"everyone": true, "content": {"body": "B"}, "rate": 0}"#, "rate is invalid: expected 1 to 1000000"),
        (#"{"everyone": true, "content": {"body": "B"}, "holdOut": 100}"#, "holdOut is invalid: expected 1 to 99"),
        (#"{"everyone": true, "content": {"body": "B"}, "devices": {"platform": ["windows"]}}"#, "devices.platform"),
        (#"{"everyone": true, "content": {"body": "B"}, "devices": {"language": ["de"]}}"#, "devices"),
        (#"{"everyone": true, "content": {"body": "B"}, "devices": {"appVersion": {"from": "x"}}}"#, "appVersion"),
        (#"{"tag": "", "content": {"body": "B"}}"#, "tag is invalid"),
    ])
    func `a mistake is reported with its place`(body: String, problem: String) {
        do {
            _ = try CampaignBody(Array(body.utf8))
            Issue.record("no problem")
        } catch {
            #expect(error.description.contains(problem), "\(error)")
        }
    }
}
