import Foundation
import PushProtocol
import Testing

@testable import DecisionLog

@Suite struct RuleCountsTests {
    private static let noon = Date(timeIntervalSince1970: 1_767_268_800)

    private func row(_ rule: String, _ numbers: [Int]) -> RuleCounts.Row {
        RuleCounts.Row(
            app: "portal", rule: rule, ruleSet: UUID(uuidString: "AAAAAAAA-0000-5000-8000-000000000001")!,
            figures: RuleCounts.Figures(
                sent: numbers[0], unsent: numbers[1], accepted: numbers[2], failed: numbers[3], opened: numbers[4],
                dismissed: numbers[5]))
    }

    @Test func `counts are printed as a table`() {
        let counts = RuleCounts(
            from: Self.noon, until: Self.noon, countedAt: nil,
            rows: [row("chat", [12_345, 0, 12_000, 1, 7, 0]), row("announcement", [1, 2, 3, 4, 5, 6])])
        #expect(
            counts.lines == [
                "app     rule          rules      sent  unsent  accepted  failed  opened  dismissed",
                "portal  chat          aaaaaaaa  12345       0     12000       1       7          0",
                "portal  announcement  aaaaaaaa      1       2         3       4       5          6",
            ])
        let nothing = RuleCounts(from: Self.noon, until: Self.noon.addingTimeInterval(3600), countedAt: nil, rows: [])
        #expect(
            nothing.lines == ["no decisions between 2026-01-01T12:00:00.000Z and 2026-01-01T13:00:00.000Z"])
    }

    @Test func `the JSON contains every count`() throws {
        let counts = RuleCounts(
            from: Self.noon, until: Self.noon, countedAt: Self.noon, rows: [row("chat", [1, 2, 3, 4, 5, 6])])
        let time: JSONValue = "2026-01-01T12:00:00.000Z"
        let expected: JSONValue = [
            "from": time, "until": time, "counted_at": time,
            "counts": [
                [
                    "app": "portal", "rule": "chat", "rule_set": "aaaaaaaa-0000-5000-8000-000000000001", "sent": 1,
                    "unsent": 2, "accepted": 3, "failed": 4, "opened": 5, "dismissed": 6,
                ]
            ],
        ]
        #expect(counts.json == expected)
    }
}
