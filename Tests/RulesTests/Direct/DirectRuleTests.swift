import Foundation
import PushProtocol
import Testing

@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// The built-in rules for direct notifications, without a database.
@Suite struct DirectRuleTests {
    static let rules = """
        app: test
        types:
          chat: { about: Messages }
          alarm: { about: Help, critical: true }
        events:
          thing.happened: { examples: [{ users: [1] }] }
        rules:
          only:
            when: { event: thing.happened }
            to: { users: users }
            say: { body: Hello }
        """
    static let arrival = Timestamp(milliseconds: 1_000_000)

    func evaluate(
        _ data: String, app: String = "test", rules: String = rules, apps: [String] = [], expiresAt: Date? = nil
    ) throws -> RuleSets.Evaluation {
        RuleSets([try parse(rules)], isConfigured: { apps.contains($0.rawValue) }).evaluate(
            event(DirectNotification.eventType, app: app, expiresAt: expiresAt, try json(data)), now: Self.arrival,
            arrivedAt: Self.arrival)
    }

    /// The one draft of a direct notification.
    func draft(_ data: String, app: String = "test", apps: [String] = [], expiresAt: Date? = nil) throws
        -> NotificationDraft
    {
        guard case .notify(let drafts, _, _) = try evaluate(data, app: app, apps: apps, expiresAt: expiresAt) else {
            throw UnexpectedEvaluation()
        }
        try #require(drafts.count == 1)
        return drafts[0]
    }

    struct UnexpectedEvaluation: Error {}

    /// The reason of a refusal; `nil` if the event is accepted.
    func refusal(_ data: String) throws -> String? {
        guard case .unrenderable(let error) = try evaluate(data) else { return nil }
        return "\(error)"
    }

    @Test func `texts are literal, and every member arrives`() throws {
        let draft = try draft(
            #"""
            {"users": ["1", 2], "content": {"title": "{{secret}}", "body": "{{#users}}{{.}}{{/users}} {{{x}}}",
             "data": {"a": "{{event.id}}"}, "link": "app://{{id}}"}, "lane": "bulk", "collapse": "{{k}}"}
            """#)
        #expect(draft.users == ["1", "2"])
        #expect(
            draft.content
                == Content(
                    title: "{{secret}}", body: "{{#users}}{{.}}{{/users}} {{{x}}}", deepLink: "app://{{id}}",
                    data: ["a": "{{event.id}}"], collapseKey: "{{k}}"))
        #expect(draft.lane == .bulk)
        #expect(draft.localizer == nil)
        #expect(draft.messages.map(\.content) == [draft.content])
    }

    @Test func `the rule's name tells the recipients, the inbox and the type`() throws {
        let content = #""content": {"body": "B"}"#
        let rules = try [
            #"{"users": ["1"], \#(content)}"#, #"{"group": "g", \#(content)}"#,
            #"{"users": ["1"], \#(content), "type": "chat"}"#,
            #"{"users": ["1"], \#(content), "type": "chat", "pushOnly": true}"#,
            #"{"users": ["1"], \#(content), "pushOnly": true}"#,
            #"{"users": ["1"], "content": {}, "silent": true}"#, #"{"users": ["1"], "content": {"badge": 1}}"#,
            #"{"topic": "t", \#(content)}"#, #"{"tag": "t", \#(content)}"#, #"{"everyone": true, \#(content)}"#,
        ].map { try draft($0) }
        #expect(
            rules.map(\.rule) == [
                "direct", "direct", "direct.chat", "direct-push-only.chat", "direct-push-only", "direct-silent",
                "direct-silent", "direct-topic", "direct-tag", "direct-everyone",
            ])
        #expect(rules.map(\.isUserVisible) == [true, true, true, true, true, false, false, true, true, true])
        #expect(rules.map(\.policy.type) == ["direct", "direct", "chat", "chat", "direct", nil, nil, nil, nil, nil])
        #expect(rules.map(\.policy.inbox) == [true, true, true, false, false, true, true, true, true, true])
        #expect(rules.suffix(3).map(\.lane) == [.bulk, .bulk, .bulk])
        #expect(Set(rules.map(\.rendered.id)).count == 8)
    }

    @Test func `audiences and groups are those of the data`() throws {
        let content = #""content": {"body": "B"}"#
        let name = GroupName(rawValue: "news")!
        #expect(try draft(#"{"topic": "news", \#(content)}"#).audience?.members == .group(.topic(name)))
        #expect(try draft(#"{"tag": "news", \#(content)}"#).audience?.members == .group(.tag(name)))
        #expect(try draft(#"{"everyone": true, \#(content)}"#).audience?.members == .everyone)
        #expect(
            try draft(#"{"group": "team/7", "roles": ["lead"], \#(content)}"#).groupReferences == [
                GroupReference(group: "team/7", roles: ["lead"], except: [])
            ])
    }

    @Test func `the earlier of the notification's and the event's expiry counts`() throws {
        let data = #"{"users": ["1"], "content": {"body": "B"}, "ttl": 60}"#
        #expect(try draft(data).rendered.expiresAt == Self.arrival + .seconds(60))
        #expect(
            try draft(data, expiresAt: Date(timeIntervalSince1970: 1030)).rendered.expiresAt
                == Self.arrival + .seconds(30))
    }

    @Test func `refused data and an unknown type name the member and the cure`() throws {
        #expect(
            try refusal(#"{"users": ["1"], "content": {"body": "B"}, "type": "news"}"#)
                == "rule direct, data: type is refused: test has no such type; choose one of alarm, chat, direct")
        #expect(
            try refusal(#"{"users": ["1"], "content": {"body": "B"}, "lane": "fast"}"#)
                == "rule direct, data: lane is refused: expected one of interactive, bulk")
        #expect(try refusal(#"{"users": ["1"]}"#) == "rule direct, data: content is missing from the event")
    }

    @Test func `a configured app without a rule file takes direct notifications only`() throws {
        let data = #"{"users": ["1"], "content": {"body": "B"}}"#
        #expect(try draft(data, app: "bare", apps: ["bare"]).rule == "direct")
        guard case .unknownApp = try evaluate(data, app: "bare") else {
            Issue.record("an app that is not configured has rules")
            return
        }
        let ruleSets = RuleSets([], isConfigured: { $0.rawValue == "bare" })
        guard
            case .unknownApp = ruleSets.evaluate(
                event("thing.happened", app: "bare", [:]), now: Self.arrival, arrivedAt: Self.arrival)
        else {
            Issue.record("an app without a rule file takes other events")
            return
        }
        #expect(ruleSets[AppID(rawValue: "bare")!]?.defaults.types.keys.sorted() == ["direct"])
    }

    @Test func `a rule file cannot use the names and the event`() throws {
        for name in ["direct", "direct-push-only", "direct-silent", "direct-topic", "direct-tag", "direct-everyone"] {
            let problem = problems(Self.rules.replacing("  only:", with: "  \(name):"))
            #expect(problem.count == 1 && problem[0].contains("built-in rule"), "\(problem)")
        }
        let reserved = problems(Self.rules.replacing("thing.happened", with: DirectNotification.eventType))
        #expect(reserved.contains { $0.contains("reserved for direct notifications") }, "\(reserved)")
        #expect(problems(Self.rules.replacing("  only:", with: "  direct-message:")).isEmpty)
    }

    @Test func `a file may describe the type itself`() throws {
        let described = Self.rules.replacing("types:", with: "types:\n  direct: { about: News, default: off }")
        #expect(try parse(Self.rules).defaults.types["direct"]?.isOn == true)
        #expect(try parse(described).defaults.types["direct"] == PreferenceType(about: "News", isOn: false))
    }

    private func problems(_ text: String) -> [String] {
        RuleFile.read(text, file: "test.yaml").1.problems.map(\.description)
    }
}
