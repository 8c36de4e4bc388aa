import Foundation
import PushProtocol
import Testing

@testable import DecisionLog

@Suite struct FunnelTests {
    private static let noon = Date(timeIntervalSince1970: 1_767_268_800)

    private static func funnel(_ property: Funnel.Property, _ rows: [Funnel.Row]) -> Funnel {
        Funnel(app: "shop", from: noon, until: noon.addingTimeInterval(3600), property: property, rows: rows)
    }

    private static let rules = funnel(
        .rule,
        [
            .init(name: "order", counts: [200, 100, 80, 20, 4]), .init(name: "offer", counts: [50, 25, 25, 0, 5]),
            .init(name: "plain", counts: [1, 0, 0, 0, 0]),
        ])

    @Test func `each step has the share of the step before`() {
        #expect(
            Self.rules.lines == [
                "rule   decided        sent    accepted     opened  dismissed",
                "order      200  100 (50 %)   80 (80 %)  20 (25 %)    4 (5 %)",
                "offer       50   25 (50 %)  25 (100 %)    0 (0 %)   5 (20 %)",
                "plain        1     0 (0 %)           0          0          0",
            ])
        let json = Self.rules.json
        #expect(json["by"] == "rule")
        #expect(
            json["rows"]?.array?.first
                == ["rule": "order", "decided": 200, "sent": 100, "accepted": 80, "opened": 20, "dismissed": 4])
    }

    @Test func `rules of a type are added`() {
        let types = Self.rules.byType(["order": "shop", "offer": "shop"])
        #expect(types.property == .type)
        #expect(
            types.rows == [
                .init(name: "shop", counts: [250, 125, 105, 20, 9]), .init(name: "-", counts: [1, 0, 0, 0, 0]),
            ])
    }

    @Test func `devices have accepted, dead and failed pushes`() {
        let devices = Self.funnel(.appVersion, [.init(name: "4.2", counts: [10, 7, 2, 1])])
        #expect(
            devices.lines == [
                "app-version  pushes  accepted      dead    failed",
                "4.2              10  7 (70 %)  2 (20 %)  1 (10 %)",
            ])
        #expect(devices.json["rows"]?.array?.first?["app-version"] == "4.2")
        #expect(
            Self.funnel(.day, []).lines
                == ["no decisions between 2026-01-01T12:00:00.000Z and 2026-01-01T13:00:00.000Z"])
    }
}
