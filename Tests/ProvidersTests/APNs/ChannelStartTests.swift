import PushProtocol
import Testing
import TestSupport

@testable import Providers

/// The start of a Live Activity that names the channel of each environment.
@Suite struct ChannelStartTests {
    static let content = Content(
        title: "Match",
        apns: APNsOverride(
            headers: ["apns-push-type": "liveactivity"],
            payload: [
                "aps": [
                    "event": "start", "timestamp": 1, "attributes-type": "A", "attributes": [:], "content-state": [:],
                    "input-push-token": 1,
                ]
            ],
            channels: ["production": ChannelID(rawValue: "dHN0")!]))

    static func aps(_ environment: ProviderEnvironment, _ content: Content = content) -> JSONValue? {
        var push = Push.sample(content, targets: [])
        push.environment = environment
        return push.apnsContent.apns?.payload?["aps"]
    }

    @Test func `in an environment with a channel, the activity follows it`() {
        let aps = Self.aps(.production)
        #expect(aps?["input-push-channel"] == "dHN0" && aps?["input-push-token"] == nil)
        #expect(aps?["event"] == "start")
    }

    @Test func `in another environment, the activity has a token`() {
        let aps = Self.aps(.development)
        #expect(aps?["input-push-channel"] == nil && aps?["input-push-token"] == 1)
    }

    @Test func `a content without channels is unchanged`() {
        var content = Self.content
        content.apns?.channels = nil
        #expect(Self.aps(.production, content) == content.apns?.payload?["aps"])
    }
}
