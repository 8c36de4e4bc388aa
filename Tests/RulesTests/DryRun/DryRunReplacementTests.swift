import Foundation
import PushProtocol
import Testing

@testable import RuleDryRun
@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// `replace` in a preview.
@Suite struct DryRunReplacementTests {
    static let start = moment("2026-01-10T12:00:00Z")

    private func lines(_ policy: String, _ steps: [(type: String, text: String)]) throws -> [String] {
        var dryRun = DryRun(RuleSets([try parse(ReplacementStoreTests.rules(policy))]))
        for (number, step) in steps.enumerated() {
            let data: JSONValue = [
                "id": 1, "users": ["a"], "text": .string(step.text), "at": "2026-01-20T12:00:00Z",
            ]
            dryRun.process(
                event(step.type, app: "test", id: "e\(number)", data), at: Self.start + .seconds(60 * number))
        }
        dryRun.advance(to: Self.start + .seconds(30 * 86_400))
        return dryRun.predictions.map {
            "\($0.event) \($0.decision.readableText) \($0.notification?.content.body ?? "-")"
        }
    }

    @Test func `given a pushed notification, then the new texts are pushed quietly`() throws {
        let lines = try lines(
            ReplacementStoreTests.plain,
            [("message.sent", "Old"), ("message.edited", "New"), ("message.edited", "Newer")])
        #expect(
            lines == [
                "e0 push (wanted) Old", "e1 push-quietly (replacement) New", "e2 push-quietly (replacement) Newer",
            ])
    }

    @Test func `given a scheduled notification, then it has the new texts`() throws {
        let lines = try lines(
            #"{ item: "m/{{id}}", schedule: { at: at } }"#, [("message.sent", "Old"), ("message.edited", "New")])
        #expect(lines.dropFirst() == ["e1 drop (words-replaced) -", "e0 push (wanted) New"])
    }

    @Test func `an unknown or revoked item is explained`() throws {
        let unknown = try lines(ReplacementStoreTests.plain, [("message.edited", "New")])
        #expect(unknown == ["e0 drop (nothing-to-replace) -"])
        let revoked = try lines(
            ReplacementStoreTests.plain, [("message.sent", "Old"), ("message.deleted", ""), ("message.edited", "New")])
        #expect(revoked.last == "e2 drop (revoked) -")
    }
}
