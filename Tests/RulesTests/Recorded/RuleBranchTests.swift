import PushProtocol
import Testing
import TestSupport

@testable import RuleDryRun
@testable import RuleEngine
@testable import RuleLanguage

/// Changes of a rule set on the command line.
@Suite struct RuleBranchTests {
    private static let text = """
        app: test
        types: { news: { about: News }, offers: { about: Offers, default: on } }
        caps: { few: { at-most: 1, within: 1h }, day: { at-most: 2, within: 24h } }
        events: { thing.happened: { examples: [{ user: a }] } }
        rules:
          one: { when: { event: thing.happened }, to: { users: user }, say: { body: Hello }, policy: { caps: few, type: offers } }
        """

    private func changed(_ branch: String) throws -> RuleSet { try RuleBranch(branch).applied(to: parse(Self.text)) }

    @Test func `a branch changes caps, quiet hours and types, and the version`() throws {
        let set = try parse(Self.text)
        let all = try changed("cap=3,quiet=22-8,type.offers=off")
        #expect(
            all.defaults.caps == [
                "few": Cap(limit: 3, window: .seconds(3600)), "day": Cap(limit: 3, window: .seconds(86_400)),
            ])
        #expect(all.defaults.types["offers"]?.isOn == false && all.defaults.types["news"]?.isOn == true)
        #expect(all.defaults.quietHours?.start.description == "22:00")
        #expect(all.defaults.quietHours?.end.description == "08:00")
        #expect(all.version != set.version && all.rules == set.rules)
        let one = try changed("cap.few=5/6h")
        #expect(one.defaults.caps["few"] == Cap(limit: 5, window: .seconds(21_600)))
        #expect(one.defaults.caps["day"] == set.defaults.caps["day"])
        #expect(try changed("quiet=22:30-06:15").defaults.quietHours?.start.description == "22:30")
    }

    @Test(arguments: [
        "", "cap", "cap=0", "cap=101", "cap=x", "cap=3/", "cap=3/6", "cap.none=3", "quiet=22", "quiet=22-22",
        "quiet=25-8",
        "quiet=a-b", "quiet.x=22-8", "type=off", "type.offers=maybe", "type.none=off", "sound=off", "cap=3,",
    ])
    func `a wrong branch is refused`(branch: String) {
        #expect(throws: RuleBranch.Problem.self) { try changed(branch) }
    }

    @Test func `quiet hours of a branch apply to users without their own`() throws {
        let event = DomainEvent(
            app: AppID(rawValue: "test")!, id: "e", source: "/up", type: "thing.happened", data: ["user": "a"])
        let night = moment("2026-03-10T23:00:00Z")
        var dryRun = DryRun(RuleSets([try changed("quiet=22-8")]))
        dryRun.process(event, at: night)
        dryRun.advance(to: night + .seconds(86_400))
        #expect(dryRun.predictions.map(\.decision.reason) == [.quietHours, .wanted])
        #expect(dryRun.predictions.last?.at == moment("2026-03-11T08:00:00Z"))
        var own = DryRun(RuleSets([try changed("quiet=22-8")]))
        own.people[PersonKey(app: event.app, user: user("a")), default: Person()].settings.quietHours = QuietHours(
            days: Set(Weekday.allCases), start: clock("00:00"), end: clock("00:00"))
        own.process(event, at: night)
        #expect(own.predictions.map(\.decision.reason) == [.wanted])
    }

    @Test func `the comparison needs new rules or a branch`() {
        #expect(throws: DryRunFiles.Problem.self) { try DryRunFiles.pair(old: "x", new: nil, branch: nil) }
    }
}
