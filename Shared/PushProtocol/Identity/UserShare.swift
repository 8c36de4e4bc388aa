package import FoundationEssentials

/// A part of an app's users, drawn by a hash, such as the fifth to the ninth percent. The same user is always in the
/// same part of a draw, and in independent parts of other draws.
package struct UserShare: Hashable, Sendable {
    /// Percent of the users, from 0 to 100.
    package var percent: Range<Int>

    package init(percent: Range<Int>) { self.percent = percent }

    /// Whether the user with this id in the draw is in this part.
    ///
    /// - Parameter draw: derived from the draw and the user (``DerivedID``).
    package func contains(_ draw: UUID) -> Bool {
        let point = (Int(draw.uuid.0) << 8 | Int(draw.uuid.1)) * 100
        return percent.lowerBound * 65_536 <= point && point < percent.upperBound * 65_536
    }
}
