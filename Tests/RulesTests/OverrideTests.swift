import Foundation
import PushProtocol
import Testing

@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// Variables in the provider-specific parts of a rule: `apns.payload` and `fcm.message`.
@Suite struct OverrideTests {
    private static let how = """
        { apns: { headers: { apns-priority: "5" }, payload: { shop: { id: "{{game.id}}", score: "{{game.score}}" } } },
          fcm: { message: { android: { notification: { channel_id: "shop-{{game.id}}", color: null } } } } }
        """

    @Test func `variables in both parts have the event's values`() throws {
        let content = try KindTests.draft(KindTests.file(say: "{ body: Hi }", how: Self.how)).content
        #expect(
            content.apns
                == APNsOverride(
                    headers: ["apns-priority": "5"], payload: ["shop": ["id": "g-1", "score": 3]]))
        #expect(
            content.fcm
                == FCMOverride(
                    message: ["android": ["notification": ["channel_id": "shop-g-1", "color": .null]]]))
    }

    @Test func `a missing variable refuses the event with its place`() throws {
        let rules = try parse(KindTests.file(say: "{ body: Hi }", how: Self.how))
        var event = event("game.changed", app: "test", KindTests.data)
        event.data = event.data.merging(["game": ["id": nil]])
        #expect(throws: RenderError.self) { try rules.evaluate(event, now: Timestamp(milliseconds: 0)) }
    }

    @Test func `browsers get the members and the urgency of the block web`() throws {
        let how = #"{ web: { urgency: very-low, message: { notification: { icon: "/icons/{{game.id}}.png" } } } }"#
        let content = try KindTests.draft(KindTests.file(say: "{ body: Hi }", how: how)).content
        let expected: JSONValue = ["notification": ["icon": "/icons/g-1.png"]]
        #expect(content.web == WebPushOverride(urgency: .veryLow, message: expected))
        let wrong = KindTests.file(say: "{ body: Hi }", how: "{ web: { urgency: highest } }")
        let problem = #expect(throws: (any Error).self) { try parse(wrong) }
        #expect("\(problem!)".contains("how.web.urgency"))
    }

    @Test func `a call has its own members and high priority`() throws {
        let content = try KindTests.draft(
            KindTests.file(say: "{}", how: #"{ as: voip, fcm: { message: { data: { game: "{{game.id}}" } } } }"#)
        ).content
        #expect(content.fcm?.message == ["android": ["priority": "HIGH"], "data": ["game": "g-1"]])
    }

    @Test func `a date in both parts is in the recipient's time zone`() throws {
        let rules = try parse(
            KindTests.file(
                say: "{ body: Hi }", how: #"{ apns: { payload: { ends: "{{time(game.ends)}}" } } }"#))
        let draft = try #require(
            rules.evaluate(event("game.changed", app: "test", KindTests.data), now: Timestamp(milliseconds: 0)).first)
        let localizer = try #require(draft.localizer)
        let zone = try #require(Zone(name: "Asia/Tokyo"))
        let text = try localizer.renderedText(localizer.localization(language: nil, zone: zone))
        #expect(text.content.apns?.payload == ["ends": "6:00\u{202f}PM"])
    }

    @Test func `a summary has the members without variables`() throws {
        let rules = try parse(
            KindTests.file(
                say: "{ body: Hi }",
                how: #"{ apns: { payload: { shop: "{{game.id}}", list: [1, "{{team}}"], plain: true } } }"#,
                policy: "{ digest: { after: 1h, say: { body: Many } }, caps: hourly, surplus: digest }"))
        let rule = try #require(rules.rule(named: "only"))
        let summary = try rule.summary(
            try #require(rule.policy.digest), of: [[:]], Localization(language: Language("en")!, zone: .utc),
            defaults: Language("en")!)
        #expect(summary.content.apns?.payload == ["list": [1], "plain": true])
    }

    @Test func `variables are refused where nothing of the event is pushed`() {
        let say = "{ body: Hi, preview: { body: News } }"
        func problems(_ privacy: String, _ value: String) -> [String] {
            let how = "{ privacy: \(privacy), fcm: { message: { data: { a: \(value) } } } }"
            return KindTests.problems(KindTests.file(say: say, how: how))
        }
        let refused = problems("id-only", #""{{team}}""#)
        #expect(refused.count == 1)
        #expect(
            refused[0].hasSuffix(
                "“privacy: id-only” pushes nothing of the event: “apns”, “fcm” and “web” take no variables"))
        #expect(problems("generic", #""{{team}}""#).isEmpty)
        #expect(problems("id-only", "b").isEmpty)
    }
}
