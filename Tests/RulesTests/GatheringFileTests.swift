import PushProtocol
import Testing

@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// Groups, schedules, digests and languages in a rule file, and their errors.
@Suite struct GatheringFileTests {
    func file(
        to: String = "{ users: users }", say: String = "{ body: Hello }", how: String = "{ sound: default }",
        policy: String = "{ quiet-hours: hold }", defaults: String = "zone: UTC"
    ) -> String {
        """
        app: test
        \(defaults)
        events:
          thing.happened:
            examples:
              - { users: [1], room: 7, due: "2026-05-01", name: Pat, them: [{ id: 1, part: boss }] }
        rules:
          only:
            when: { event: thing.happened }
            to: \(to)
            say: \(say)
            how: \(how)
            policy: \(policy)
        """
    }

    func problems(_ text: String) -> [String] {
        do {
            _ = try RuleFile.parse(text, file: "test.yaml")
            return []
        } catch {
            return error.problems.map { "\($0.line) \($0.key): \($0.problem)" }
        }
    }

    @Test func `groups, schedules and digests are read`() throws {
        let text = file(
            to: #"[{ users: users }, { group: "room/{{room}}", role: [boss, clerk], except: users }]"#,
            say: "{}",
            policy: """
                {
                      item: "{{room}}", report: true, schedule: { at: due, before: 2d, time: "08:30" },
                      digest: { bucket: "{{room}}", after: 15m, count: 3, keep: { name: "{{name}}" }, order: name,
                        say: { body: "{{count}} {{first.name}}" } } }
                """,
            defaults: """
                groups:
                  - { event: thing.happened, group: "room/{{room}}", joined: users, as: clerk }
                  - { event: thing.happened, group: "room/{{room}}", members: them, id: id, role: part }
                  - { event: thing.happened, group: "room/{{room}}", left: users }
                done:
                  - { event: thing.happened, item: "{{room}}" }
                """)
        #expect(problems(text) == [])
        let ruleSet = try parse(text)
        let rule = try #require(ruleSet.rules.first)
        #expect(rule.groups.map(\.roles) == [["boss", "clerk"]])
        #expect(rule.policy.schedule == Schedule(at: "due", offset: .seconds(-172_800), time: clock("08:30")))
        #expect(rule.policy.digest?.close == .after(.seconds(900)))
        #expect(rule.policy.digest?.count == 3)
        #expect(rule.policy.isReported)
        let happened = event(
            "thing.happened", app: "test",
            ["users": [1, 2], "room": 7, "due": "2026-05-01", "name": "Pat", "them": [["id": 3, "part": "boss"]]])
        let draft = try #require(try ruleSet.evaluate(happened).first)
        #expect(
            draft.groupReferences == [
                GroupReference(group: "room/7", roles: ["boss", "clerk"], except: [user("1"), user("2")])
            ])
        #expect(draft.terms.entry == Digest.Entry(bucket: "only/7", values: ["name": "Pat"]))
        #expect(draft.terms.plan?.dueAt(in: .utc) == moment("2026-04-29T08:30:00Z"))
        #expect(
            try ruleSet.signals(of: happened) == [
                .done(item: "7"), .membership(group: "room/7", [user("1"): "clerk", user("2"): "clerk"], .joined),
                .membership(group: "room/7", [user("3"): "boss"], .members),
                .membership(group: "room/7", [user("1"): nil, user("2"): nil], .left),
            ])
    }

    @Test(arguments: [
        (
            "{ group: \"{{rom}}\" }",
            "8 rules.only.to.group: no example of the event has “rom”; did you mean “room”?"
        ),
        ("{ group: g, rol: x }", "10 rules.only.to.rol: unknown key; did you mean “role”?"),
        (
            "{ audience: all }",
            "10 rules.only.to.audience: the only audience is “everyone”; use “topic” or “tag” in place of “audience”"
        ),
    ]) func `an error under to is reported`(to: String, problem: String) {
        let found = problems(file(to: to))
        let key = problem.split(separator: " ", maxSplits: 1)[1]
        #expect(found.contains { $0.hasSuffix(key) }, "\(found)")
    }

    @Test func `a policy for an audience is an error`() {
        let found = problems(file(to: "{ audience: everyone }"))
        #expect(found.count == 1)
        #expect(found.first?.contains("the rule takes no “policy” and has no inbox") == true, "\(found)")
        let listed = problems(file(to: "[{ audience: everyone }, { users: users }]"))
        #expect(listed.contains { $0.contains("only the token registry knows the audience") }, "\(listed)")
    }

    @Test(arguments: [
        ("{ schedule: { before: 3d } }", "“at” is missing"),
        ("{ schedule: { at: due, before: 3d, after: 1d } }", "set only one of “before” and “after”"),
        ("{ schedule: { at: due, before: 500d } }", "at most 400d"),
        ("{ schedule: { at: due, time: noon } }", "“noon” is not a time of day such as 09:00"),
        ("{ schedule: { at: name } }", "name is not a date (2026-03-31) or a time (2026-03-31T09:00:00Z)"),
        ("{ surplus: digest }", "“surplus: digest” needs a “digest”"),
        (
            "{ digest: { say: { body: x } } }",
            "a digest needs either “at”, a local time, or “after”, a delay after the first item"
        ),
        (
            "{ digest: { at: \"09:00\", count: 3, say: { body: x } } }",
            "“count” needs “after”: a digest with “at” is sent only at that time"
        ),
        (
            "{ digest: { at: \"09:00\", days: sunday, say: { body: x } } }",
            "“sunday” is not one of mon, tue, wed, thu, fri, sat, sun"
        ),
        (
            "{ digest: { at: \"09:00\", month-days: [0], say: { body: x } } }",
            "expected a whole number from 1 to 31"
        ),
        (
            "{ digest: { at: \"09:00\", month-days: 1, days: [mon], say: { body: x } } }",
            "set only one of “days” and “month-days”"
        ),
        // Days on which no digest would ever be sent.
        ("{ digest: { at: \"09:00\", days: [], say: { body: x } } }", "the list is empty"),
        ("{ digest: { at: \"09:00\", month-days: [], say: { body: x } } }", "the list is empty"),
        (
            "{ digest: { at: \"09:00\", month-days: [32], say: { body: x } } }", "expected a whole number from 1 to 31"
        ),
        ("{ digest: { after: 1h, days: [mon], say: { body: x } } }", "“days” needs “at”, a local time"),
        (
            "{ digest: { after: 1h, remains: told, say: { body: x } } }",
            "“remains: told” needs “at”: with “after”, the digest would repeat without end"
        ),
        ("{ digest: { after: 1h, say: { body: \"{{first.nme}}\" } } }", "no example of the event has “first.nme”"),
        ("{ digest: { after: 1h, order: x, say: { body: y } } }", "“keep” has no “x” to order by"),
        (
            "{ digest: { after: 1h, say: { body: y } }, mutes: \"{{room}}\" }",
            "a “digest” excludes “mutes”, “presence” and “dedupe”: its summary covers many items"
        ),
        ("{ dedupe: { key: \"{{room}}\" } }", "“within” is missing"),
    ]) func `an error under policy is reported`(policy: String, problem: String) {
        let say = policy.contains("digest: {") ? "{}" : "{ body: Hello }"
        let found = problems(file(say: say, policy: policy))
        #expect(found.contains { $0.hasSuffix(problem) }, "\(found)")
    }

    @Test(arguments: [
        ("{ body: x }", "{ privacy: generic }", "“privacy: generic” needs a “preview” under “say”"),
        (
            "{ body: x, preview: { body: \"{{name}}\" } }", "{ privacy: generic }",
            "a preview takes no variables, because strangers may read it"
        ),
        (
            "{ body: x, preview: { body: y } }", "{}",
            "a “preview” needs “privacy: generic” or “privacy: id-only” under “how”"
        ),
        (
            "{ body: x, languages: { german_: { body: y } } }", "{}",
            "“german_” is not a language tag of BCP 47, such as de or pt-BR"
        ),
        (
            "{ body: x, languages: { de: { body: \"{{nme}}\" } } }", "{}",
            "no example of the event has “nme”; did you mean “name”?"
        ),
        (
            "{ body: \"{{time(due)}}\" }", "{}",
            "with an example of thing.happened: due is not a time (2026-03-31T09:00:00Z)"
        ),
    ]) func `an error under say or how is reported`(say: String, how: String, problem: String) {
        let found = problems(file(say: say, how: how))
        #expect(found.contains { $0.hasSuffix(problem) }, "\(found)")
    }

    @Test func `with a preview, the push has the preview and the inbox the full text`() throws {
        for (privacy, hasData) in [("generic", true), ("id-only", false)] {
            let draft = try #require(
                try parse(
                    file(
                        say:
                            #"{ title: "{{name}}", body: "{{name}}!", deep-link: "x://{{room}}", data: { a: 1 }, preview: { body: News } }"#,
                        how: "{ sound: default, privacy: \(privacy) }")
                ).evaluate(event("thing.happened", app: "test", ["users": [1], "room": 7, "name": "Pat"])).first)
            #expect(draft.content.title == "Pat")
            let preview = try #require(draft.preview)
            #expect(preview.title == nil)
            #expect(preview.body == "News")
            #expect(preview.sound == "default")
            #expect((preview.data != nil) == hasData)
            #expect((preview.deepLink != nil) == hasData)
        }
    }
}

/// Language fallback.
@Suite struct LanguageTests {
    @Test(arguments: [
        ("de", ["de"]), ("de-CH", ["de-CH", "de"]), ("DE_ch", ["de-CH", "de"]),
        ("zh-Hant-HK", ["zh-Hant-HK", "zh-Hant"]), ("zh-Hant", ["zh-Hant"]), ("zh-TW", ["zh-TW", "zh-Hant"]),
        ("zh-CN", ["zh-CN", "zh"]), ("sr-Latn-RS", ["sr-Latn-RS", "sr-Latn"]), ("es-419", ["es-419", "es"]),
        ("de-DE-u-co-phonebk", ["de-DE-u-co-phonebk", "de-DE-u-co", "de-DE", "de"]),
    ]) func `a language falls back to the nearest one`(tag: String, chain: [String]) throws {
        #expect(try #require(Language(tag)).chain.map(\.tag) == chain)
    }

    @Test(arguments: ["", "d", "de-", "-de", "de--CH", "123", "de-toolongsubtag", "d e", "{{x}}"])
    func `an invalid language tag is refused`(tag: String) { #expect(Language(tag) == nil) }

    @Test func `each recipient gets their language and time zone, or the file's defaults`() throws {
        let text = """
            app: test
            language: en
            zone: UTC
            events:
              thing.happened:
                examples: [{ users: [1], at: "2026-03-31T22:30:00Z" }]
            rules:
              only:
                when: { event: thing.happened }
                to: { users: users }
                say:
                  title: News
                  body: "At {{datetime(at)}}"
                  languages:
                    de: { body: "Am {{datetime(at)}}" }
            """
        let happened = event("thing.happened", app: "test", ["users": [1, 2, 3, 4], "at": "2026-03-31T22:30:00Z"])
        let ruleSet = try parse(text)
        let draft = try #require(try ruleSet.evaluate(happened).first)
        func person(_ language: String?, _ name: String?) -> Person {
            var person = Person()
            person.settings.language = language.flatMap { Language($0) }
            person.settings.zone = name.map { zone($0) }
            return person
        }
        let app = AppID(rawValue: "test")!
        let localized = draft.localized([
            PersonKey(app: app, user: user("1")): person("de-AT", "Europe/Vienna"),
            PersonKey(app: app, user: user("2")): person("fr", "America/New_York"),
            PersonKey(app: app, user: user("3")): person("de-AT", "Europe/Vienna"),
        ])
        #expect(localized.map { $0.recipients.map(\.user.rawValue) } == [["1", "3"], ["2"], ["4"]])
        #expect(localized.map(\.rendered.content.title) == ["News", "News", "News"])
        let bodies = localized.map { ($0.rendered.content.body ?? "").replacing("\u{202F}", with: " ") }
        #expect(bodies[0].hasPrefix("Am 1. April 2026"), "\(bodies)")
        #expect(bodies[0].hasSuffix("0:30"), "\(bodies)")
        #expect(bodies[1] == "At March 31, 2026 at 6:30 PM", "\(bodies)")
        #expect(bodies[2] == "At March 31, 2026 at 10:30 PM", "\(bodies)")
        #expect(Set(localized.map(\.rendered.id)).count == 3)
        // Each language has its own message.
        let messages = localized.flatMap { $0.notifications(to: $0.recipients, quietly: false) }
        #expect(Set(messages.map(\.trace.id)).count == 3)
    }
}
