package import PushProtocol
import FoundationEssentials

/// A part of an app's users, drawn by a hash, such as the fifth to the ninth percent. The same user is always in the
/// same part of a draw, and in independent parts of other draws.
package struct UserShare: Hashable, Sendable {
    /// Percent of the users, from 0 to 100.
    package var percent: Range<Int>

    package init(percent: Range<Int>) { self.percent = percent }

    /// Whether the user is in this part of the draw with these names.
    package func contains(_ user: UserID, in draw: [String]) -> Bool {
        let id = DerivedID.uuid5(DerivedID.namespace, ["share"] + draw + [user.rawValue]).uuid
        let point = (Int(id.0) << 8 | Int(id.1)) * 100
        return percent.lowerBound * 65_536 <= point && point < percent.upperBound * 65_536
    }
}
