import Foundation

/// Compares the shares of two groups of users, such as the share that opened a notification.
///
/// The result is valid at any time, for any number of looks: without an effect, the probability that
/// ``pValue`` ever falls below 0.05 is at most 0.05. A usual test loses this when its result is looked at repeatedly.
/// It is the mixture sequential probability ratio test with a normal mixture: Johari, Koomen, Pekelis, Walsh, “Always
/// Valid Inference: Continuous Monitoring of A/B Tests”, Operations Research 70 (3), 2022, equation 10. The variance is
/// estimated, so groups need ``leastUsers``.
package struct SequentialComparison: Hashable, Sendable {
    /// Users, and those of them that did it.
    package struct Group: Hashable, Sendable {
        package var users: Int
        package var hits: Int

        package init(users: Int, hits: Int) {
            self.users = users
            self.hits = hits
        }

        package var share: Double { users == 0 ? 0 : Double(hits) / Double(users) }

        fileprivate var varianceOfShare: Double { share * (1 - share) / Double(users) }
    }

    package static let leastUsers = 100
    /// The least number of users that did it, in both groups together.
    static let leastHits = 20
    /// The standard deviation of effects in the mixture: five percentage points. The choice changes how soon an effect is
    /// found, and not the rate of false alarms.
    private static let typicalEffect = 0.05

    package var control: Group
    package var treatment: Group

    package init(control: Group, treatment: Group) {
        self.control = control
        self.treatment = treatment
    }

    /// Whether both groups are large enough for a result.
    package var isLargeEnough: Bool {
        min(control.users, treatment.users) >= Self.leastUsers && control.hits + treatment.hits >= Self.leastHits
    }

    /// The difference of the shares: positive if that of the treatment is greater.
    package var effect: Double { treatment.share - control.share }

    /// From 0 to 1; 1 if the groups are too small.
    package var pValue: Double {
        guard isLargeEnough else { return 1 }
        let variance = control.varianceOfShare + treatment.varianceOfShare
        guard variance > 0 else { return 1 }
        let mixture = Self.typicalEffect * Self.typicalEffect
        let ratio =
            (variance / (variance + mixture)).squareRoot()
            * exp(effect * effect * mixture / (2 * variance * (variance + mixture)))
        return min(1, 1 / ratio)
    }
}
