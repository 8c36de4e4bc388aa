import Foundation
import PushProtocol
import Testing

@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// `variants` of rules, and `hold-out` of a file.
@Suite struct VariantTests {
    private static let users = (1...4000).map { user("u\($0)") }

    private static func file(_ variants: String, file: String = "", to: String = "{ users: users }") -> String {
        """
        app: test
        types: { tips: { about: Tips }, alarm: { about: Alarms, critical: true } }
        \(file)
        events: { tip: { examples: [{ users: [1] }] } }
        groups: [{ event: tip, group: staff, members: users }]
        rules:
          tip:
            when: { event: tip }
            to: \(to)
            say: { title: A tip, body: Try it }
            how: { lane: bulk }
            policy: { type: tips }
        \(variants)
        """
    }

    private static let two = """
            variants:
              plain: { share: 30% }
              short: { share: 70%, say: { body: Do it } }
        """

    private static func problems(_ text: String) -> [String] {
        do {
            _ = try parse(text)
            return []
        } catch {
            return (error as? RuleFileError)?.problems.map(\.description) ?? ["\(error)"]
        }
    }

    private static func event(_ users: [UserID]) -> DomainEvent {
        RulesTests.event("tip", ["users": .array(users.map { .string($0.rawValue) })])
    }

    private static func drafts(_ text: String) throws -> [String: NotificationDraft] {
        let drafts = try parse(text).evaluate(event(users), now: Timestamp(milliseconds: 0))
        return Dictionary(uniqueKeysWithValues: drafts.map { ($0.rendered.rule, $0) })
    }

    private static func decide(_ text: String, _ users: [UserID] = users) throws -> [DecisionRecord] {
        let set = try parse(text)
        let event = event(users)
        let now = Timestamp(milliseconds: 0)
        let eventCase = EventCase(event, ruleSet: set, arrivedAt: now, drafts: try set.evaluate(event, now: now))
        var people: [PersonKey: Person] = [:]
        return eventCase.decisions(&people, ItemState(), now: now)
    }

    @Test func `each variant is a rule with its own words, and keeps the others`() throws {
        let drafts = try Self.drafts(Self.file(Self.two))
        #expect(drafts.keys.sorted() == ["tip-plain", "tip-short"])
        #expect(drafts["tip-plain"]?.content.body == "Try it")
        #expect(drafts["tip-short"]?.content.body == "Do it")
        #expect(drafts["tip-short"]?.content.title == "A tip")
        #expect(drafts["tip-short"]?.rendered.lane == .bulk)
        #expect(drafts["tip-short"]?.policy.type == "tips")
    }

    @Test func `each user gets one variant, and the same one with every event`() throws {
        let first = try Self.drafts(Self.file(Self.two)).mapValues { Set($0.recipients.map(\.user)) }
        let plain = try #require(first["tip-plain"])
        let short = try #require(first["tip-short"])
        #expect(plain.isDisjoint(with: short))
        #expect(plain.union(short) == Set(Self.users))
        // Four standard deviations of 4,000 draws are 3 %.
        #expect((1080...1320).contains(plain.count), "\(plain.count) of 4,000 for a share of 30 %")
        let again = try parse(Self.file(Self.two)).evaluate(
            Self.event(Self.users.reversed()), now: Timestamp(milliseconds: 5))
        for draft in again { #expect(Set(draft.recipients.map(\.user)) == first[draft.rendered.rule]) }
    }

    @Test func `members of a group and users of a segment get one variant`() throws {
        for to in ["{ group: staff }", "{ segment: { tag: x } }"] {
            let drafts = try Self.drafts(Self.file(Self.two, to: to)).values.map { draft in
                var draft = draft
                draft.append(Self.users)
                return Set(draft.recipients.map(\.user))
            }
            #expect(drafts.count == 2)
            #expect(drafts.reduce(0) { $0 + $1.count } == Self.users.count)
            #expect(drafts.reduce(into: Set()) { $0.formUnion($1) } == Set(Self.users))
        }
    }

    @Test func `a held-out variant gets nothing, with a reason`() throws {
        let variants = """
                variants:
                  told: { share: 50% }
                  untold: { share: 50%, hold-out: true }
            """
        let decisions = try Self.decide(Self.file(variants))
        #expect(decisions.count == Self.users.count)
        for one in decisions {
            let isTold = one.rule == "tip-told"
            #expect(one.decision.answer == (isTold ? .push : .drop))
            #expect(one.decision.reason == (isTold ? .wanted : .holdOut))
        }
        #expect((1870...2130).contains(decisions.count { $0.rule == "tip-untold" }))
    }

    @Test func `a user of a hold-out whose settings refuse the notification has that reason`() throws {
        let set = try parse(Self.file("", file: "hold-out: { share: 99%, types: tips }"))
        let event = Self.event(Self.users)
        let now = Timestamp(milliseconds: 0)
        let eventCase = EventCase(event, ruleSet: set, arrivedAt: now, drafts: try set.evaluate(event, now: now))
        var people: [PersonKey: Person] = [:]
        for user in Self.users {
            people[PersonKey(app: event.app, user: user)] = Person(settings: PersonalSettings(types: ["tips": false]))
        }
        let decisions = eventCase.decisions(&people, ItemState(), now: now)
        #expect(Set(decisions.map(\.decision.reason)) == [.typeOff])
        #expect(decisions.count { $0.decision.answer == .drop } > 3900)
        #expect(people.values.allSatisfy { $0.capHistory.isEmpty && $0.dedupeUntil.isEmpty })
    }

    @Test func `the file's hold-out concerns its types, and always the same users`() throws {
        let held = try Self.decide(Self.file("", file: "hold-out: { share: 5%, types: tips }"))
            .filter { $0.decision.reason == .holdOut }
        #expect(held.allSatisfy { $0.decision.answer == .drop })
        #expect((145...255).contains(held.count), "\(held.count) of 4,000 for a share of 5 %")
        let wider = try Self.decide(Self.file("", file: "hold-out: { share: 10%, types: [tips] }"))
            .filter { $0.decision.reason == .holdOut }
        #expect(Set(wider.map(\.person)).isSuperset(of: held.map(\.person)))
        let others = Self.file("", file: "hold-out: { share: 5%, types: tips }").replacing(
            "policy: { type: tips }", with: "policy: {}")
        #expect(try Self.decide(others).allSatisfy { $0.decision.reason == .wanted })
    }

    @Test(arguments: [
        ("    variants: { plain: { share: 30% }, short: { share: 60% } }", "add up to 90%; they must add up to 100%"),
        ("    variants: { plain: { share: 99% } }", "at least two variants"),
        ("    variants: { plain: { share: half }, short: { share: 50% } }", "expected a share from 1% to 99%"),
        ("    variants: { plain: {}, short: { share: 50% } }", "“share” is missing"),
        ("    variants: { a: { share: 50%, to: x }, b: { share: 50% } }", "unknown key"),
        ("    variants: { a: { share: 50%, hold-out: true, say: { body: x } }, b: { share: 50% } }", "remove this"),
        ("    variants: { a.b: { share: 50% }, b: { share: 50% } }", "a name has only letters"),
        ("    variants: [a, b]", "expected keys with values, not a list"),
    ]) func `a mistake in variants is reported`(variants: String, problem: String) {
        let problems = Self.problems(Self.file(variants))
        #expect(problems.contains { $0.contains(problem) }, "\(problems)")
    }

    @Test func `a mistake names its place in the file, and once`() {
        let variants = """
                variants:
                  plain: { share: 50% }
                  short: { share: 50%, say: { bdy: x } }
            """
        let problems = Self.problems(Self.file(variants))
        #expect(problems.count == 1)
        #expect(problems[0].contains("test.yaml:15: rules.tip.variants.short.say.bdy: unknown key"), "\(problems)")
        let common = Self.problems(Self.file(Self.two).replacing("body: Try it", with: "body: \"{{gone}}\""))
        #expect(common.count == 1, "\(common)")
        #expect(common[0].contains("rules.tip.say.body"), "\(common)")
    }

    @Test func `a misspelt or missing key of a rule without variants is reported once`() {
        let right = Self.file("")
        for (key, mistake) in [("to: { users: users }", "too: { users: users }"), ("to: { users: users }\n", "\n")] {
            let problems = Self.problems(right.replacing(key, with: mistake))
            #expect(!problems.isEmpty && Set(problems).count == problems.count, "\(problems)")
        }
    }

    @Test func `names of rules stay distinct`() {
        let text =
            Self.file(Self.two) + """

                  tip-short:
                    when: { event: tip }
                    to: { users: users }
                    say: { body: x }
                """
        #expect(Self.problems(text).contains { $0.contains("the same name “tip-short”") })
    }

    @Test func `critical notifications and unknown recipients take no variants`() {
        let critical = Self.file(Self.two).replacing("type: tips }", with: "type: alarm }")
        #expect(Self.problems(critical).contains { $0.contains("a critical notification reaches all") })
        let everyone = Self.file(Self.two, to: "{ audience: everyone }").replacing(
            "    policy: { type: tips }\n", with: "")
        #expect(Self.problems(everyone).contains { $0.contains("the recipients are not known here") })
        for (holdOut, problem) in [
            ("{ share: 5%, types: [alarm] }", "critical; nobody can be left out"),
            ("{ share: 5%, types: other }", "is not under “types”"), ("{ types: tips }", "“share” is missing"),
        ] {
            let problems = Self.problems(Self.file("", file: "hold-out: \(holdOut)"))
            #expect(problems.contains { $0.contains(problem) }, "\(problems)")
        }
    }

    // MARK: - Stops

    private static func recipients(_ set: RuleSet, at time: Int64) throws -> [String: Set<UserID>] {
        let moment = Timestamp(milliseconds: time)
        let drafts = try set.evaluate(event(users), now: moment, arrivedAt: moment)
        return Dictionary(
            uniqueKeysWithValues: drafts.map { ($0.rendered.rule, Set($0.recipients.map(\.user))) })
    }

    @Test func `from its time on, users of a stopped variant get the first one`() throws {
        let set = try parse(Self.file(Self.two))
        let before = try Self.recipients(set, at: 0)
        let stopped = set.stopping(["tip-short": Timestamp(milliseconds: 1000), "gone": Timestamp(milliseconds: 0)])
        #expect(stopped.stops == ["tip-short": Timestamp(milliseconds: 1000)])
        #expect(try Self.recipients(stopped, at: 999) == before)
        #expect(try Self.recipients(stopped, at: 1000) == ["tip-plain": Set(Self.users)])
        #expect(try Self.recipients(stopped.stopping([:]), at: 1000) == before)
        // The first one has no other to fall back to.
        #expect(set.stopping(["tip-plain": Timestamp(milliseconds: 0)]).stops.isEmpty)
    }

    @Test func `of three variants, only the stopped one moves`() throws {
        let three = """
                variants:
                  plain: { share: 30% }
                  short: { share: 30%, say: { body: Do it } }
                  loud: { share: 40%, say: { body: DO IT } }
            """
        let set = try parse(Self.file(three))
        let before = try Self.recipients(set, at: 0)
        let after = try Self.recipients(set.stopping(["tip-loud": Timestamp(milliseconds: 0)]), at: 0)
        #expect(after["tip-short"] == before["tip-short"])
        #expect(after["tip-plain"] == before["tip-plain"]?.union(before["tip-loud"] ?? []))
        #expect(after["tip-loud"] == nil)
    }

    @Test func `a reload keeps the stops`() throws {
        let current = CurrentRules(RuleSets([try parse(Self.file(Self.two))]))
        let app = AppID(rawValue: "test")!
        let stops = ["tip-short": Timestamp(milliseconds: 5)]
        current.stop([app: stops])
        #expect(current.ruleSets[app]?.stops == stops)
        current.put(RuleSets([try parse(Self.file(Self.two))]))
        #expect(current.ruleSets[app]?.stops == stops)
        current.stop([:])
        #expect(current.ruleSets[app]?.stops.isEmpty == true)
    }

    @Test func `a replay has the stops of the recorded decisions`() throws {
        let set = try parse(Self.file(Self.two))
        let now = Timestamp(milliseconds: 2000)
        let stopped = set.stopping(["tip-short": Timestamp(milliseconds: 1000)])
        let event = RulesTests.event(
            "tip", app: "test", ["users": .array(Self.users.map { .string($0.rawValue) })])
        let one = EventCase(
            event, ruleSet: stopped, arrivedAt: now, drafts: try stopped.evaluate(event, now: now, arrivedAt: now))
        var recorder = DecisionRecorder([event.app], now: now)
        let isRecorded = recorder.add(one, isPage: false, [:], ItemState())
        #expect(isRecorded)
        var people: [PersonKey: Person] = [:]
        let decisions = one.decisions(&people, ItemState(), now: now)
        recorder.count(decisions.count)
        #expect(Set(decisions.map(\.rule)) == ["tip-plain"] && decisions.count == Self.users.count)
        var recording = try #require(recorder.recordings.first)
        recording.body = try #require(try Recording.Body(kind: recording.kind, text: try recording.text()))
        #expect(try recording.replayed(by: RuleSets([set])) { _ in nil } == decisions)
    }
}
