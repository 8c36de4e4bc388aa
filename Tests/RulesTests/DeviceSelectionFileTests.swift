import AMQP
import Foundation
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RuleDryRun
@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// `platforms` and `unless` under `how`.
@Suite(.timeLimit(.minutes(2))) struct DeviceSelectionFileTests {
    static func rules(_ how: String, to: String = "{ users: users }") throws -> RuleSet {
        try parse(ruleFile(to: to, how: how))
    }

    private static func problems(_ how: String, to: String = "{ users: users }") -> [String] {
        do {
            _ = try RuleFile.parse(ruleFile(to: to, how: how), file: "test.yaml")
            return []
        } catch {
            return error.problems.map { "\($0.key): \($0.problem)" }
        }
    }

    private static func selection(_ how: String) throws -> DeviceSelection? {
        let data: JSONValue = ["name": "Pat", "users": [1]]
        return try rules(how).evaluate(event("thing.happened", app: "test", data)).first?.messages.first?.devices
    }

    @Test func `the message has the selection`() throws {
        #expect(try Self.selection("lane: interactive") == nil)
        #expect(try Self.selection("platforms: android") == DeviceSelection(platforms: [.android]))
        #expect(
            try Self.selection(#"unless: { registered: live-activity, scope: "order/{{name}}" }"#)
                == DeviceSelection(unless: DeviceSelection.Registered(kind: .liveActivity, scope: "order/Pat")))
    }

    @Test func `an audience takes platforms only`() throws {
        let draft = try #require(
            try Self.rules("platforms: [apple, web]", to: "{ audience: everyone }")
                .evaluate(event("thing.happened", app: "test", ["name": "Pat", "users": [1]])).first)
        #expect(draft.audience?.devices == DeviceFilter(platform: [.apple, .web]))
        #expect(
            Self.problems("unless: { registered: alert }", to: "{ topic: news }")
                == ["rules.only.how: “unless” needs named users or a group: an audience takes only “platforms”"])
    }

    @Test func `mistakes name the key`() {
        #expect(
            Self.problems("platforms: [ios]")
                == ["rules.only.how.platforms.0: “ios” is not one of apple, android, web"])
        #expect(
            Self.problems("unless: { registered: live-activty }").first
                == "rules.only.how.unless.registered: “live-activty” is not one of "
                + RegistrationKind.allCases.map(\.rawValue).joined(separator: ", ")
                + "; did you mean “live-activity”?")
        #expect(Self.problems("unless: { scope: x }") == ["rules.only.how.unless: “registered” is missing"])
    }

    @Test func `given quiet hours, then the released notification has the selection`() async throws {
        let how = #"{ platforms: android, unless: { registered: live-activity, scope: "{{name}}" } }"#
        try await RulesDatabase.withPool { pool in
            let fixture = try GatheringTests.GatheringFixture(pool, ruleFile(how: how))
            try await pool.execute(
                """
                INSERT INTO rules.person (app, user_id, settings) VALUES
                    ('test', '1', '{"quiet_hours":{"start":"10:00","end":"14:00"},"zone":"UTC"}')
                """)
            #expect(try await fixture.handleEvent("thing.happened", #"{"name":"Pat","users":[1]}"#) == [])
            fixture.clock.advance(.seconds(3 * 3600))
            try await fixture.scheduledSendWorker.releaseDue()
            let message = try #require(
                fixture.bus.messages(in: WorkQueue.registryNotifications(.interactive).name).first)
            #expect(
                try Notification.decode(wireBody: message.body).devices
                    == DeviceSelection(
                        platforms: [.android],
                        unless: DeviceSelection.Registered(kind: .liveActivity, scope: "Pat")))
        }
    }

    @Test func `a preview shows only the selected platforms`() throws {
        var dryRun = DryRun(RuleSets([try Self.rules("platforms: android")]))
        dryRun.process(
            event("thing.happened", app: "test", ["name": "Pat", "users": [1]]), at: moment("2026-01-10T12:00:00Z"))
        let lines = Platforms(nil).lines(dryRun.predictions[0])
        #expect(lines.contains { $0.contains("FCM") } && !lines.contains { $0.contains("APNs") })
    }
}
