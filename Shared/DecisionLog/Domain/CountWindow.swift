package import PushProtocol

/// Of which time somebody wants to know what came of the rules.
package struct CountWindow: Hashable, Sendable {
    /// The longest.
    package static let longest = Duration.seconds(400 * 86_400)
    /// The longest, in whole days, to tell people.
    package static var longestInDays: Int64 { longest.components.seconds / 86_400 }
    /// What those who do not say from when on are told about.
    private static let usual = Duration.seconds(86_400)
    private static let hour = Duration.seconds(3600)

    /// The hour in which it begins, and the end of that in which its last moment is.
    let start: Timestamp
    let end: Timestamp

    /// - Parameters:
    ///   - from: `nil`: a day before `until`.
    ///   - until: Itself outside.
    /// - Returns: `nil` where that is empty, or longer than ``longest``.
    package init?(from: Timestamp?, until: Timestamp) {
        let from = from ?? until - Self.usual
        guard from < until, until - from <= Self.longest else { return nil }
        start = from.rounded(downTo: Self.hour)
        let last = until.rounded(downTo: Self.hour)
        end = last == until ? last : last + Self.hour
    }
}
