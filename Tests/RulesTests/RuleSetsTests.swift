import Foundation
import PushProtocol
import Testing

@testable import RuleLanguage
@testable import Rules

@Suite struct RuleSetsTests {
    let ruleSets: RuleSets
    let now = Timestamp(milliseconds: 1_000_000)

    init() throws { ruleSets = RuleSets([try parse(ruleFile(say: #"body: "{{name}}""#))]) }

    func answer(_ event: DomainEvent) -> String {
        switch ruleSets.evaluate(event, now: now, arrivedAt: now) {
        case .notify(let drafts, _, _): "notify \(drafts.count)"
        case .unrenderable(let error): "\(error)"
        case .expired: "expired"
        case .unknownApp: "unknown app"
        case .unknownType: "unknown type"
        }
    }

    @Test func `every event has exactly one result`() {
        let data: JSONValue = ["name": "Pat", "users": [1]]
        let past = Date(timeIntervalSince1970: 999)
        let future = Date(timeIntervalSince1970: 1001)
        #expect(answer(event("thing.happened", app: "test", data)) == "notify 1")
        #expect(answer(event("thing.happened", app: "test", expiresAt: future, data)) == "notify 1")
        #expect(answer(event("thing.happened", app: "test", ["name": "Pat", "users": []])) == "notify 0")
        #expect(answer(event("thing.happened", app: "test", expiresAt: past, data)) == "expired")
        #expect(answer(event("thing.happened", app: "other", data)) == "unknown app")
        #expect(answer(event("thing.else", app: "test", data)) == "unknown type")
        #expect(
            answer(event("thing.happened", app: "test", ["users": [1]]))
                == "rule only, say.body: name is missing from the event")
        #expect(
            answer(event("thing.happened", app: "test", "text"))
                == "rule only, to.users: users is missing from the event")
    }

    @Test func `long texts are cut`() throws {
        let rules = try parse(ruleFile(say: #"{ title: "{{name}}", body: "{{name}}" }"#))
        let long = String(repeating: "a", count: 600)
        let content = try rules.evaluate(event("thing.happened", ["name": .string(long), "users": [1]])).first?.content
        #expect(content?.title?.count == 100)
        #expect(content?.body?.count == 500)
    }

    @Test func `a text that renders empty is absent`() throws {
        let rules = try parse(
            ruleFile(
                example: "{ name: 3, users: [1] }", say: #"{ title: T, body: "{{optional(name)}}" }"#,
                how: #"{ thread: "{{optional(name)}}", badge: "{{optional(name)}}" }"#))
        let content = try rules.evaluate(event("thing.happened", ["users": [1]])).first?.content
        #expect(content == Content(title: "T"))
    }

    @Test func `delivery options are copied to the notification`() throws {
        let rules = try parse(
            ruleFile(
                say: "{ title: T, subtitle: S, deep-link: app://x, image: https://example.com/i.png }",
                how: """
                    { lane: bulk, sound: ping.caf, badge: 0, category: c, thread: t, interruption-level: passive,
                              expires-after: 7d, delivery: at-most-once, collapse-key: k, apns: { headers: { apns-priority: 5 }, payload: { x: [1] } },
                              fcm: { message: { android: { ttl: 3s } }, dry-run: true } }
                    """))
        let draft = try #require(try rules.evaluate(event("thing.happened", ["users": [1]])).first)
        #expect(draft.lane == .bulk)
        #expect(draft.rendered.expiresAt == Timestamp(milliseconds: 0) + .seconds(604_800))
        #expect(draft.rendered.delivery == .atMostOnce)
        #expect(
            draft.content
                == Content(
                    title: "T", subtitle: "S", badge: 0, sound: "ping.caf", category: "c", thread: "t",
                    deepLink: "app://x",
                    image: "https://example.com/i.png", interruptionLevel: .passive, collapseKey: "k",
                    apns: APNsOverride(headers: ["apns-priority": "5"], payload: ["x": [1]]),
                    fcm: FCMOverride(message: ["android": ["ttl": "3s"]], validateOnly: true)))
    }

    @Test(
        arguments: [
            ("https://img.example/a.png", "https://img.example/a.png"), ("http://img.example/a.png", nil), ("", nil),
            ("file:///a.png", nil),
        ] as [(String, String?)])
    func `an image that phones do not load is left out of the notification`(url: String, image: String?) throws {
        let rules = try parse(
            ruleFile(
                example: "{ users: [1], photo: https://img.example/x.png }",
                say: #"{ body: Hi, image: "{{photo}}" }"#))
        let draft = try #require(
            try rules.evaluate(event("thing.happened", ["users": [1], "photo": .string(url)])).first)
        #expect(draft.content == Content(body: "Hi", image: image))
    }

    @Test func `a collapse key that the providers refuse is refused`() throws {
        let rules = try parse(ruleFile(how: #"collapse-key: "{{name}}""#))
        let error = #expect(throws: RenderError.self) {
            try rules.evaluate(
                event("thing.happened", ["name": .string(String(repeating: "a", count: 65)), "users": [1]]))
        }
        #expect(error?.place == "how.collapse-key")
    }
}
