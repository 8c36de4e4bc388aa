import PushProtocol
import Testing

@testable import Rules

/// The schedule of the hourly statistics.
@Suite struct StatsRollupPlanTests {
    private let now = moment("2026-01-10T12:20:00Z")

    private func hour(_ text: String) -> Timestamp { moment("2026-01-\(text):00:00Z") }

    /// All hours within the window are counted, including the late recounts.
    private var settled: [Timestamp: Timestamp] {
        let hours = stride(from: 0, through: 170, by: 1).map { StatsRollupPlan.hour(of: now) + .seconds(-3600 * $0) }
        return Dictionary(uniqueKeysWithValues: hours.map { ($0, now) })
    }

    @Test func `hours without statistics are counted, up to a week back`() {
        let due = StatsRollupPlan.due([:], now: now)
        #expect(due.first == hour("10T12") && due.last == hour("03T13"))
        #expect(due.count == 168 && Set(due).count == 168)
        #expect(StatsRollupPlan.due(settled, now: now).isEmpty)
    }

    @Test func `an hour is counted every ten minutes until an hour after its end`() {
        for (counted, at, isDue) in [
            ("12:11:00", "12:20:00", false), ("12:10:00", "12:20:00", true), ("13:05:00", "13:20:00", true),
            // Once more when the next hour has ended, and not after that.
            ("13:55:00", "14:10:00", true), ("14:00:00", "14:20:00", false), ("14:10:00", "20:00:00", false),
        ] {
            let (counted, at) = (moment("2026-01-10T\(counted)Z"), moment("2026-01-10T\(at)Z"))
            #expect(
                StatsRollupPlan.due([hour("10T12"): counted], now: at).contains(hour("10T12")) == isDue, "\(counted)")
        }
    }

    @Test func `an hour is counted again after one day and after three days`() {
        for (counted, at, isDue) in [
            ("10T14", "11T12", false), ("10T14", "11T13", true), ("11T13", "11T14", false), ("11T13", "13T12", false),
            ("11T13", "13T13", true), ("13T13", "16T13", false),
            // After days without a run, one count is enough.
            ("10T14", "14T00", true), ("14T00", "14T01", false),
        ] {
            let due = StatsRollupPlan.due([hour("10T12"): hour(counted)], now: hour(at))
            #expect(due.contains(hour("10T12")) == isDue, "\(counted) \(at)")
        }
    }

    @Test func `times before 1970 have their hour`() {
        #expect(StatsRollupPlan.hour(of: Timestamp(milliseconds: -1)) == Timestamp(milliseconds: -3_600_000))
        #expect(StatsRollupPlan.hour(of: Timestamp(milliseconds: 3_600_000)) == Timestamp(milliseconds: 3_600_000))
    }

    @Test func `counting uses at most 5 percent of the time`() {
        #expect(StatsRollup.rest(after: .zero) == .seconds(60) && StatsRollup.rest(after: .seconds(3)) == .seconds(60))
        #expect(StatsRollup.rest(after: .seconds(50)) == .seconds(950))
    }
}
