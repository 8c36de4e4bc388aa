import Foundation
import PushProtocol
import Testing

@testable import DecisionLog

/// The output of `pushctl census`.
@Suite struct CensusTests {
    private static let now = Date(timeIntervalSince1970: 1_767_225_600)

    @Test func `the numbers add up to the total, and a gap names stage, notification and next command`() {
        let id = UUID(uuidString: "22222222-2222-5222-8222-222222222222")!
        let census = Census(
            at: Self.now, countedAt: Self.now - 3,
            rows: [
                .init(app: "b", state: "missing-sender", number: 1, oldestAt: Self.now - 42),
                .init(app: "b", state: "accepted", number: 120), .init(app: "a", state: "newer-state", number: 7),
                .init(app: "a", state: "held", number: 2, oldestAt: Self.now - 7300),
            ],
            gaps: [
                .init(
                    app: "b", state: "missing-sender", number: 1, notification: id, event: "e-1",
                    decidedAt: Self.now - 42)
            ])
        #expect(
            census.lines == [
                "app    state           number  oldest",
                "a      held                 2     2 h",
                "a      newer-state          7       -",
                "b      accepted           120       -",
                "b      missing-sender       1    42 s",
                "total                     130",
                "gap: b: 1 missing between token-registry and the senders (*-sender.pushes.*)",
                "  oldest: notification 22222222-2222-5222-8222-222222222222, decided 2025-12-31T23:59:18.000Z, "
                    + "42 s ago",
                "  next: pushctl explain e-1 --app b",
            ])
        #expect(census.total == 130 && census.isCurrent)
    }

    @Test func `an old or missing census says so`() {
        let old = Census(at: Self.now, countedAt: Self.now - 61, rows: [], gaps: [])
        #expect(!old.isCurrent && old.lines.last == "the census is 61 s old: check that rules is running")
        let none = Census(at: Self.now, countedAt: nil, rows: [], gaps: [])
        #expect(!none.isCurrent && none.lines.count == 1)
    }

    @Test func `every state of a missing notification has a place, and no other has`() {
        for state in CensusState.allCases { #expect(state.isGap == (state.place != nil), "\(state)") }
    }
}
