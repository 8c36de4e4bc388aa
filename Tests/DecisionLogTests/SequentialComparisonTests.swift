import Foundation
import Testing
import TestSupport

@testable import DecisionLog

/// The test for variants, on synthetic users with known effects.
@Suite struct SequentialComparisonTests {
    typealias Group = SequentialComparison.Group

    /// Numbers of hits among ``step`` users, drawn by the binomial distribution.
    private struct Draws {
        static let step = 200
        /// The probability of at most n hits, by n.
        let cumulative: [Double]

        init(share: Double) {
            var probability = pow(1 - share, Double(Self.step))
            var sum = 0.0
            cumulative = (0...Self.step).map { hits in
                if hits > 0 {
                    probability *= Double(Self.step - hits + 1) / Double(hits) * share / (1 - share)
                }
                sum += probability
                return sum
            }
        }

        func next(_ random: inout SplitMix) -> Int {
            let point = Double.random(in: 0..<1, using: &random)
            var (low, high) = (0, Self.step)
            while low < high {
                let middle = (low + high) / 2
                if point < cumulative[middle] { high = middle } else { low = middle + 1 }
            }
            return low
        }
    }

    /// The share of the runs that find a difference at any of their looks, one after each 200 users of a group.
    private static func found(_ control: Double, _ treatment: Double, users: Int, seed: UInt64) -> Double {
        let runs = 1000
        let draws = (Draws(share: control), Draws(share: treatment))
        var random = SplitMix(seed: seed)
        var found = 0
        for _ in 0..<runs {
            var comparison = SequentialComparison(
                control: Group(users: 0, hits: 0), treatment: Group(users: 0, hits: 0))
            for _ in 0..<(users / Draws.step) {
                comparison.control.users += Draws.step
                comparison.control.hits += draws.0.next(&random)
                comparison.treatment.users += Draws.step
                comparison.treatment.hits += draws.1.next(&random)
                if comparison.pValue < VariantReport.level {
                    found += 1
                    break
                }
            }
        }
        return Double(found) / Double(runs)
    }

    @Test(arguments: [0.02, 0.2, 0.5])
    func `without an effect, at most 5 % of 1,000 runs ever find one in 100 looks`(share: Double) {
        let found = Self.found(share, share, users: 20_000, seed: 1)
        #expect(found <= 0.05, "\(found) of the runs")
    }

    @Test func `three points more openings among 10,000 users are found in at least 80 % of the runs`() {
        let found = Self.found(0.20, 0.23, users: 10_000, seed: 3)
        #expect(found >= 0.8, "\(found) of the runs")
    }

    @Test func `one point more users that switch off among 10,000 is found in at least 80 % of the runs`() {
        let found = Self.found(0.01, 0.02, users: 10_000, seed: 4)
        #expect(found >= 0.8, "\(found) of the runs")
    }

    /// Shows that the test above can fail: a usual test at each look finds effects that are not there.
    @Test func `a usual test at each look has more false alarms`() {
        let draws = Draws(share: 0.2)
        var random = SplitMix(seed: 5)
        var found = 0
        for _ in 0..<200 {
            var (a, b) = (0, 0)
            for look in 1...100 {
                a += draws.next(&random)
                b += draws.next(&random)
                let users = Double(look * Draws.step)
                let share = Double(a + b) / (2 * users)
                let error = (2 * share * (1 - share) / users).squareRoot()
                if abs(Double(a - b)) / users > 1.96 * error {
                    found += 1
                    break
                }
            }
        }
        #expect(found > 40, "\(found) of 200 runs")
    }

    @Test func `small or uniform groups have no result`() {
        func pValue(_ a: Group, _ b: Group) -> Double { SequentialComparison(control: a, treatment: b).pValue }
        #expect(pValue(Group(users: 0, hits: 0), Group(users: 0, hits: 0)) == 1)
        #expect(pValue(Group(users: 99, hits: 1), Group(users: 5000, hits: 2500)) == 1)
        #expect(pValue(Group(users: 5000, hits: 9), Group(users: 5000, hits: 10)) == 1)
        #expect(pValue(Group(users: 5000, hits: 5000), Group(users: 5000, hits: 5000)) == 1)
        #expect(pValue(Group(users: 100_000, hits: 1000), Group(users: 100_000, hits: 90_000)) == 0)
    }
}
