import PushProtocol
import Testing

@testable import RuleLanguage
@testable import Rules

/// The policy part of a rule file, and its errors.
@Suite struct PolicyFileTests {
    func file(_ policy: String, defaults: String = "", how: String = "sound: default") -> String {
        """
        app: test
        zone: Europe/Berlin
        types:
          chat: { about: Messages }
          news: { about: What is new, default: off }
          alarm: { about: It burns, critical: true }
        caps:
          hourly: { at-most: 4, within: 1h }
        \(defaults)
        events:
          thing.happened:
            examples:
              - { users: [1], room: 7, family: 3, thread: null }
        rules:
          only:
            when: { event: thing.happened }
            to: { users: users }
            say: { body: Hello }
            how: { \(how) }
            policy: \(policy)
        """.replacing("\n\n", with: "\n")
    }

    func problems(_ text: String) -> [String] {
        do {
            _ = try RuleFile.parse(text, file: "test.yaml")
            return []
        } catch {
            return error.problems.map { "\($0.line) \($0.key): \($0.problem)" }
        }
    }

    @Test func `all policy keys are read`() throws {
        let ruleSet = try parse(
            file(
                """
                {
                    type: chat, mutes: ["family/{{family}}", "room/{{room}}", "{{#thread}}thread/{{.}}{{/thread}}"],
                    presence: thread, caps: [hourly], surplus: hold, quiet-hours: silent, hold-for: 2h, inbox: false }
                """, how: #"thread: "{{room}}""#))
        #expect(
            ruleSet.defaults
                == AppDefaults(
                    zone: zone("Europe/Berlin"),
                    types: [
                        "chat": .init(about: "Messages"), "news": .init(about: "What is new", isOn: false),
                        "alarm": .init(about: "It burns", isCritical: true),
                        "direct": .init(about: "Messages from the app's team"),
                    ],
                    caps: ["hourly": Cap(limit: 4, window: .seconds(3600))]))
        let policy = try #require(ruleSet.rules.first?.policy)
        #expect(policy.type == "chat")
        #expect(policy.presence == .thread)
        #expect(policy.caps == ["hourly"])
        #expect(policy.overflow == .hold)
        #expect(policy.quietHours == .silent)
        #expect(policy.holdFor == .seconds(7200))
        #expect(!policy.inbox)
        let draft = try #require(
            try ruleSet.evaluate(event("thing.happened", ["users": [1], "room": 7, "family": 3, "thread": nil])).first)
        #expect(draft.mutes == ["family/3", "room/7"])
        #expect(draft.isUserVisible)
    }

    @Test func `a file without policies has the defaults`() throws {
        let ruleSet = try parse(ruleFile())
        #expect(ruleSet.defaults == AppDefaults.standard)
        #expect(ruleSet.rules.map(\.policy) == [Rule.Policy()])
    }

    @Test(arguments: [
        ("{ typ: chat }", "19 rules.only.policy.typ: unknown key; did you mean “type”?"),
        ("{ type: chta }", "19 rules.only.policy.type: there is no “chta” under “types”; did you mean “chat”?"),
        (
            "{ caps: [hourli] }",
            "19 rules.only.policy.caps.0: there is no “hourli” under “caps”; did you mean “hourly”?"
        ),
        ("{ surplus: hold }", "19 rules.only.policy.surplus: “surplus” needs “caps”"),
        (
            "{ caps: [hourly], inbox: false }",
            "19 rules.only.policy.inbox: notifications over a cap would be lost; use “inbox: true” or “surplus: hold”"
        ),
        (
            "{ quiet-hours: inbox, inbox: false }",
            "19 rules.only.policy.inbox: notifications in quiet hours would be lost; use “hold” or “silent”"
        ),
        (
            "{ presence: threads }",
            "19 rules.only.policy.presence: “threads” is not one of ignored, app, thread; did you mean “thread”?"
        ),
        (
            "{ presence: thread }",
            "19 rules.only.policy: “presence: thread” needs a “thread” under “how”"
        ),
        (
            "{ hold-for: soon }",
            "19 rules.only.policy.hold-for: expected a duration such as 90s, 30m, 24h or 7d"
        ),
        (
            "{ type: alarm, caps: [hourly] }",
            "19 rules.only.policy.caps: “alarm” is critical, so this key does not apply"
        ),
        (
            #"{ mutes: ["room/{{rom}}"] }"#,
            "19 rules.only.policy.mutes: no example of the event has “rom”; did you mean “room”?"
        ),
    ])
    func `an error in a policy is reported with line and key`(policy: String, problem: String) {
        let found = problems(file(policy))
        #expect(found.map { $0.replacing(".mutes.0:", with: ".mutes:") } == [problem])
    }

    @Test(arguments: [
        ("  daily: { at-most: 0, within: 1d }", "9 caps.daily.at-most: expected a whole number from 1 to 100"),
        ("  daily: { at-most: 5 }", "9 caps.daily: “within” is missing"),
        ("  day.ly: { at-most: 5, within: 1d }", "9 caps.day.ly: a name has only letters, digits, “_” and “-”"),
    ])
    func `an error in an app-wide setting is reported with line and key`(defaults: String, problem: String) {
        #expect(problems(file("{ caps: [hourly] }", defaults: defaults)) == [problem])
    }

    @Test func `zones and types are checked`() {
        let text = file("{ type: chat }").replacing("Europe/Berlin", with: "CET+1")
            .replacing("{ about: Messages }", with: "{ default: on }")
            .replacing("{ about: It burns, critical: true }", with: "{ about: It burns, critical: true, default: off }")
        #expect(
            problems(text) == [
                "2 zone: “CET+1” is not a zone of the tz database, such as Europe/Berlin or UTC",
                "4 types.chat: “about” is missing",
                "6 types.alarm: a critical type is always on; remove “default: off”",
            ])
    }

    @Test(arguments: [
        ("{ as: silent, badge: 1 }", "a silent push cannot have a badge; use “as: badge-only”"),
        ("{ as: badge-only }", "“as: badge-only” needs a “badge”, under “how” or in “to”"),
        (
            "{ as: badge-only, badge: 1, sound: default }",
            "“as: badge-only” cannot have texts, a sound or an interruption level"
        ),
    ])
    func `a badge-only rule has a number and nothing else`(how: String, problem: String) {
        let text = file("{}", how: "").replacing("how: {  }", with: "how: \(how)").replacing(
            "    say: { body: Hello }\n", with: ""
        )
        .replacing("    policy: {}", with: "")
        #expect(problems(text).map { $0.split(separator: ": ", maxSplits: 1).last.map(String.init) } == [problem])
        let sound = text.replacing(how, with: "{ as: badge-only, badge: 1 }")
        #expect(problems(sound) == [])
        #expect(problems(sound + "\n    policy: { presence: app }").count == 1)
        let draft = try? parse(sound).evaluate(event("thing.happened", ["users": [1]])).first
        #expect(draft?.content == .init(badge: 1))
        #expect(draft?.isUserVisible == false)
    }
}
