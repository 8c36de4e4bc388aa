import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import Rules

/// A user disables a type while events are being handled.
@Suite(.timeLimit(.minutes(8))) struct PreferenceRaceTests {
    @Test func `an event in flight is pushed or kept in the inbox, by the preference at its decision`()
        async throws
    {
        try await DecisionStoreTests().withFixture(
            DecisionStoreTests.rules.replacing("caps: hourly, ", with: "")
        ) { (fixture: DecisionStoreTests.DecisionFixture) async throws in
            var ends: Set<String> = []
            for round in 0..<30 {
                try await fixture.setPreferences(PersonalSettings())
                let published = try await withThrowingTaskGroup(of: [String].self) { group in
                    for number in 0..<6 {
                        group.addTask {
                            try await fixture.handleEvent("r\(round)-\(number)").joined().map { "\($0) \(number)" }
                        }
                    }
                    group.addTask {
                        try await fixture.setPreferences(PersonalSettings(isOn: false))
                        // The preference is committed from here on.
                        #expect(try await fixture.handleEvent("r\(round)-after") == [[]])
                        return []
                    }
                    return try await group.reduce(into: []) { $0 += $1 }
                }
                let decided: [String] = try await fixture.pool.query(
                    """
                    SELECT answer || ' ' || reason FROM rules.decision JOIN rules.event ON event = key
                    WHERE id LIKE \("r\(round)-%")
                    """
                ).map { try $0.decode(String.self, at: 0) }
                #expect(decided.count == 7)
                #expect(Set(decided).isSubset(of: ["push wanted", "inbox switched-off"]), "\(decided)")
                // Published notifications match the decisions, and the inbox has every event.
                #expect(published.count == decided.filter { $0 == "push wanted" }.count)
                #expect(try await fixture.inbox() == (round + 1) * 7)
                ends.formUnion(decided)
            }
            #expect(ends.count == 2, "the race went one way only: \(ends)")
        }
    }
}
