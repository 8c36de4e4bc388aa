import Foundation
import PushProtocol
import Testing

@testable import RuleLanguage
@testable import Rules

/// `replace` in a rule file: its drafts and its errors.
@Suite struct ReplacementFileTests {
    static let rules = """
        app: test
        events:
          message.sent: { examples: [{ id: 1, users: [a, b], text: Hi, at: "2026-01-20T12:00:00Z" }] }
          message.edited: { examples: [{ id: 1, text: Hi }] }
          message.liked: { examples: [{ id: 1 }] }
        replace:
          - { event: message.edited, item: "m/{{id}}", rule: only }
        rules:
          only:
            when: { event: message.sent }
            to: { users: users }
            say: { body: "{{text}}" }
            how: { sound: default, expires-after: 1h }
            policy: { item: "m/{{id}}" }
          every:
            when: { event: message.liked }
            to: { audience: everyone }
            say: { body: Liked }
          quiet:
            when: { event: message.liked }
            to: { users: id }
            how: { as: silent }
          personal:
            when: { event: message.sent }
            to: { users: users }
            say: { body: "{{recipient.id}}" }
            policy: { item: "m/{{id}}" }
        """

    static func problems(_ entry: String, _ change: (String) -> String = { $0 }) -> [String] {
        let text = change(rules).replacing(
            #"{ event: message.edited, item: "m/{{id}}", rule: only }"#, with: entry)
        do {
            _ = try RuleFile.parse(text, file: "test.yaml")
            return []
        } catch {
            return error.problems.map { "\($0.key): \($0.problem)" }
        }
    }

    static let file = rules.replacing(
        #"""
          personal:
            when: { event: message.sent }
            to: { users: users }
            say: { body: "{{recipient.id}}" }
            policy: { item: "m/{{id}}" }
        """#, with: "")

    @Test func `an event under replace renders the rule's texts, without recipients`() throws {
        let rules = try parse(Self.file)
        let drafts = try rules.evaluate(event("message.edited", app: "test", ["id": 7, "text": "New"]))
        #expect(drafts.map(\.rule) == ["only"] && drafts.map(\.users) == [[]])
        #expect(drafts.first?.content.body == "New" && drafts.first?.terms.item == "m/7")
        #expect(rules.storesItems)
        // An event without an item replaces nothing.
        let other = Self.file.replacing(#"item: "m/{{id}}", rule"#, with: #"item: "{{optional(item)}}", rule"#)
        let missing = event("message.edited", app: "test", ["id": 7, "text": "New"])
        #expect((try? parse(other).evaluate(missing))?.isEmpty ?? true)
    }

    @Test func `each replaced notification gets its own draft with the original's identifier and lifetime`() throws {
        let drafts = try parse(Self.file).evaluate(event("message.edited", app: "test", ["id": 7, "text": "New"]))
        let draft = try #require(drafts.first)
        let end = Timestamp(milliseconds: 5_000)
        let original = ReplacedNotification(
            user: user("a"), notification: DerivedID.uuid5(DerivedID.namespace, ["x"]), state: .pushed,
            expiresAt: end, decidedAt: Timestamp(milliseconds: 1_000))
        let one = try #require(draft.replacing([original]).first)
        #expect(one.users == ["a"] && one.rendered.expiresAt == end)
        #expect(one.replacedIdentifier == original.notification.uuidString.lowercased())
        #expect(draft.replacing([]).map(\.isOfNobody) == [true])
        #expect(draft.replacing([original], isTooLarge: true).map(\.isOfNobody) == [true])
    }

    @Test(arguments: [
        (#"{ event: message.edited, item: "m/{{id}}" }"#, "replace.0: “rule” is missing"),
        (#"{ event: message.edited, rule: only }"#, "replace.0: “item” is missing"),
        (
            #"{ event: message.edited, item: x, rule: onli }"#,
            "replace.0.rule: the file has no rule “onli”; did you mean “only”?"
        ),
        (
            #"{ event: message.edited, item: x, rule: every }"#,
            "replace.0.rule: the recipients of “every” are unknown to rules; name a rule with users or groups"
        ),
        (
            #"{ event: message.edited, item: x, rule: quiet }"#,
            "replace.0.rule: “quiet” sends silent; only an alert has texts to replace"
        ),
        (
            #"{ event: message.sent, item: x, rule: only }"#,
            "replace.0.rule: “message.sent” makes notifications of “only” itself; replace them by another event"
        ),
        (
            #"{ event: message.liked, item: "m/{{id}}", rule: only }"#,
            "replace.0.rule: with an example of message.liked: rules.only.say.body: text is missing from the event"
        ),
        (
            #"{ event: message.edited, item: "m/{{idd}}", rule: only }"#,
            "replace.0.item: no example of the event has “idd”; did you mean “id”?"
        ),
        (
            #"{ event: message.edited, item: x, rule: only, user: id }"#,
            "replace.0.user: unknown key; the keys here are event, data, item, rule"
        ),
    ])
    func `a mistake in a replacement is reported with its key`(entry: String, problem: String) {
        #expect(Self.problems(entry) { _ in Self.file } == [problem])
    }

    @Test func `given a rule without an item, then a replacement is a mistake`() {
        let problems = Self.problems(#"{ event: message.edited, item: x, rule: only }"#) { _ in
            Self.file.replacing(#"    policy: { item: "m/{{id}}" }\#n"#, with: "")
        }
        #expect(
            problems == [
                "replace.0.rule: “only” has no policy.item, so its notifications cannot be found; add an item to it"
            ])
    }

    @Test func `the catalog names the fields that an event under replace needs`() throws {
        let catalog = try EventCatalog(Self.file, file: "test.yaml")
        let edited = try #require(catalog.events.first { $0.type == "message.edited" })
        #expect(edited.fields.first { $0.path == "text" }?.requiredBy == ["replace.0"])
        #expect(edited.fields.first { $0.path == "id" }?.places == ["replace.0.item"])
    }
}
