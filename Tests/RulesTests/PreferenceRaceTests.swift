import Postgres
import PushProtocol
import TestSupport
import Testing

@testable import Rules

/// A person switches off while events are on their way.
@Suite(.timeLimit(.minutes(8))) struct PreferenceRaceTests {
    @Test func `an event in flight is pushed or left to the inbox, by what held when it was decided, and never both`()
        async throws
    {
        try await DecisionStoreTests().withHouse(
            DecisionStoreTests.rules.replacing("caps: hourly, ", with: "")
        ) { (house: DecisionStoreTests.House) async throws in
            var ends: Set<String> = []
            for round in 0..<30 {
                try await house.choose(PersonalSettings())
                let told = try await withThrowingTaskGroup(of: [String].self) { group in
                    for number in 0..<6 {
                        group.addTask {
                            try await house.happen("r\(round)-\(number)").joined().map { "\($0) \(number)" }
                        }
                    }
                    group.addTask {
                        try await house.choose(PersonalSettings(isOn: false))
                        // From here on it holds.
                        #expect(try await house.happen("r\(round)-after") == [[]])
                        return []
                    }
                    return try await group.reduce(into: []) { $0 += $1 }
                }
                let decided: [String] = try await house.pool.query(
                    """
                    SELECT answer || ' ' || reason FROM rules.decision JOIN rules.event ON event = key
                    WHERE id LIKE \("r\(round)-%")
                    """
                ).map { try $0.decode(String.self, at: 0) }
                #expect(decided.count == 7)
                #expect(Set(decided).isSubset(of: ["push wanted", "inbox switched-off"]), "\(decided)")
                // What was published is what was decided, and the inbox has all of it.
                #expect(told.count == decided.filter { $0 == "push wanted" }.count)
                #expect(try await house.inbox() == (round + 1) * 7)
                ends.formUnion(decided)
            }
            #expect(ends.count == 2, "the race went one way only: \(ends)")
        }
    }
}
