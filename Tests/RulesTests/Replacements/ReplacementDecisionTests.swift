import Foundation
import PushProtocol
import Testing

@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// Decisions about new texts, without a database.
@Suite struct ReplacementDecisionTests {
    static let now = moment("2026-01-10T12:00:00Z")

    private func decision(
        _ change: (inout ReplacedNotification) -> Void = { _ in }, settings: PersonalSettings = PersonalSettings(),
        state: ItemState = ItemState()
    ) throws -> String {
        let set = try parse(ReplacementFileTests.file)
        let edit = DomainEvent(
            app: set.app, id: "edit", source: "/up", type: "message.edited", time: Self.now.date,
            data: ["id": 7, "text": "New"])
        var original = ReplacedNotification(
            user: user("a"), notification: UUID(), state: .pushed, isAnswered: true, isInInbox: true,
            expiresAt: Self.now + .seconds(60), decidedAt: Self.now - .seconds(60))
        change(&original)
        var event = EventCase(
            edit, ruleSet: set, arrivedAt: Self.now,
            drafts: try set.evaluate(edit).flatMap { $0.replacing([original]) })
        event.drafts = event.drafts.flatMap { $0.localized([:]) }
        let person = PersonKey(app: set.app, user: user("a"))
        var people = [person: Person(settings: settings)]
        let decided = event.decisions(&people, state, now: Self.now)
        #expect(people[person]?.capHistory.isEmpty == true)
        #expect(decided.count == 1)
        let answer = try #require(decided.first?.decision)
        return "\(answer.answer.word) \(answer.reason.rawValue)"
    }

    @Test func `a pushed notification is replaced quietly, and one without an outcome with its sound`() throws {
        #expect(try decision() == "push-quietly replacement")
        #expect(try decision { $0.isAnswered = false } == "push replacement")
    }

    @Test func `a waiting notification and an inbox item get the texts, without a push`() throws {
        #expect(try decision { $0.state = .waiting } == "drop words-replaced")
        #expect(try decision { $0.state = .kept } == "drop words-replaced")
        #expect(try decision { $0.state = .gone } == "drop nothing-to-replace")
    }

    @Test func `nothing is pushed if the original is read, removed, revoked, over or older than a week`() throws {
        #expect(try decision { $0.isRead = true } == "drop already-read")
        #expect(try decision { $0.isInInbox = false } == "drop already-read")
        #expect(try decision { $0.isRevoked = true } == "drop revoked")
        #expect(try decision { $0.isOvertaken = true } == "drop overtaken")
        #expect(try decision { $0.expiresAt = Self.now } == "drop too-late")
        #expect(
            try decision {
                $0.expiresAt = nil
                $0.decidedAt = Self.now - .seconds(7 * 86_400)
            } == "drop too-late")
    }

    @Test func `a user who has switched pushes off since then gets none`() throws {
        var settings = PersonalSettings()
        settings.isOn = false
        #expect(try decision(settings: settings) == "drop switched-off")
    }

    @Test func `an item that is done or revoked is not replaced`() throws {
        let item = ItemKey(app: AppID(rawValue: "test")!, item: "m/7")
        #expect(try decision(state: ItemState(done: [item: Self.now])) == "drop done")
        var revoked = RevocationState()
        revoked.revoke(item, nil, until: Self.now)
        #expect(try decision(state: ItemState(revoked: revoked)) == "drop revoked")
    }

    @Test func `an unknown item and too many notifications have one decision`() throws {
        let set = try parse(ReplacementFileTests.file)
        let edit = event("message.edited", app: "test", ["id": 7, "text": "New"])
        for (isTooLarge, expected) in [(false, "nothing-to-replace"), (true, "too-many")] {
            let drafts = try set.evaluate(edit).flatMap { $0.replacing([], isTooLarge: isTooLarge) }
            let event = EventCase(edit, ruleSet: set, arrivedAt: Self.now, drafts: drafts)
            var people: [PersonKey: Person] = [:]
            let decided = event.decisions(&people, ItemState(), now: Self.now)
            #expect(decided.map(\.decision.reason.rawValue) == [expected])
            #expect(decided.map(\.decision.answer) == [.drop])
            #expect(drafts.flatMap { $0.notifications([:], unread: [:]) }.isEmpty)
        }
    }

    @Test func `the push has the original's identifier and no sound`() throws {
        let set = try parse(ReplacementFileTests.file)
        let edit = event("message.edited", app: "test", ["id": 7, "text": "New"])
        let original = ReplacedNotification(
            user: user("a"), notification: UUID(), state: .pushed, isAnswered: true, decidedAt: Self.now)
        let draft = try #require(try set.evaluate(edit).first?.replacing([original]).first)
        let answers = [draft.recipients[0].notification: RuleDecision.Answer.pushQuietly]
        let message = try #require(draft.notifications(answers, unread: [:]).first)
        #expect(message.content.collapseKey == original.notification.uuidString.lowercased())
        #expect(message.content.sound == nil && message.content.interruptionLevel == .passive)
        #expect(message.recipients.map(\.notification) != [original.notification])
        #expect(draft.revokedOriginal(answers) == original.notification)
    }

    @Test func `given texts above the limit, then the error names the limit`() throws {
        let say = #"say: { body: "{{text}}" }"#
        let set = try parse(
            ReplacementFileTests.file.replacing(say, with: #"say: { body: x, data: { t: "{{text}}" } }"#))
        let text = String(repeating: "x", count: WireCoding.maximumBodySize)
        let edit = event("message.edited", app: "test", ["id": 7, "text": .string(text)])
        let event = EventCase(edit, ruleSet: set, arrivedAt: Self.now, drafts: try set.evaluate(edit))
        do {
            try event.checkReplacementSizes()
            Issue.record("the event is accepted")
        } catch {
            #expect("\(error)".contains("\(WireCoding.maximumBodySize)"), "\(error)")
        }
    }
}
