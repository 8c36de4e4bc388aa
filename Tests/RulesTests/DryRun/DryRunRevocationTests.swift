import Foundation
import PushProtocol
import Testing

@testable import RuleDryRun
@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// `revoke` in a preview.
@Suite struct DryRunRevocationTests {
    static let rules = """
        app: test
        events:
          message.sent: { examples: [{ id: 1, users: [a, b], at: "2026-01-20T12:00:00Z" }] }
          message.deleted: { examples: [{ id: 1, by: a }] }
        revoke:
          - { event: message.deleted, item: "m/{{id}}" }
        rules:
          only:
            when: { event: message.sent }
            to: { users: users }
            say: { body: Hello }
            how: { badge: unread }
            policy: { item: "m/{{id}}" }
        """
    static let start = moment("2026-01-10T12:00:00Z")

    private func lines(_ rules: String, _ types: [String]) throws -> [String] {
        var dryRun = DryRun(RuleSets([try parse(rules)]))
        for (number, type) in types.enumerated() {
            let data: JSONValue = ["id": 1, "users": ["a", "b"], "at": "2026-01-20T12:00:00Z", "by": "a"]
            dryRun.process(
                event(type, app: "test", id: "e\(number)", data), at: Self.start + .seconds(60 * number))
        }
        dryRun.advance(to: Self.start + .seconds(30 * 86_400))
        return dryRun.predictions.map {
            "\($0.event) \($0.user) \($0.decision.readableText) \($0.notification?.recipients.first?.badge ?? -1)"
        }.sorted()
    }

    @Test func `given a pushed notification, then its inbox item goes and the badge is corrected`() throws {
        #expect(
            try lines(Self.rules, ["message.sent", "message.deleted"]) == [
                "- a push (noiseless) 0", "- b push (noiseless) 0", "e0 a push (wanted) 1", "e0 b push (wanted) 1",
            ])
        let keeping = Self.rules.replacing(#"item: "m/{{id}}" }\#n"#, with: #"item: "m/{{id}}", inbox: keep }\#n"#)
        #expect(
            try lines(keeping, ["message.sent", "message.deleted"]) == [
                "e0 a push (wanted) 1", "e0 b push (wanted) 1",
            ])
    }

    @Test func `given a scheduled notification, then it is dropped, for one user or for all`() throws {
        let scheduled = Self.rules.replacing("policy: {", with: "policy: { schedule: { at: at },")
        let all = try lines(scheduled, ["message.sent", "message.deleted"])
        #expect(all.filter { $0.contains("drop (revoked)") }.count == 2 && !all.contains { $0.contains("wanted") })
        let one = scheduled.replacing(#"item: "m/{{id}}" }\#n"#, with: #"item: "m/{{id}}", user: by }\#n"#)
        let rest = try lines(one, ["message.sent", "message.deleted"])
        #expect(rest.filter { $0.contains("drop (revoked)") } == ["e0 a drop (revoked) -1"])
        #expect(rest.contains("e0 b push (wanted) 1"))
    }
}
