package import PushProtocol

/// A time window of rule counts, extended to whole hours.
package struct CountWindow: Hashable, Sendable {
    package static let maximumLength = Duration.seconds(400 * 86_400)
    /// The maximum length in days, for messages.
    package static var maximumDays: Int64 { maximumLength.components.seconds / 86_400 }
    private static let defaultLength = Duration.seconds(86_400)
    private static let hour = Duration.seconds(3600)

    let start: Timestamp
    /// The end of the last hour.
    let end: Timestamp

    /// - Parameters:
    ///   - from: `nil` means a day before `until`.
    ///   - until: exclusive.
    /// - Returns: `nil` if the window is empty or longer than ``maximumLength``.
    package init?(from: Timestamp?, until: Timestamp) {
        let from = from ?? until - Self.defaultLength
        guard from < until, until - from <= Self.maximumLength else { return nil }
        start = from.rounded(downTo: Self.hour)
        let last = until.rounded(downTo: Self.hour)
        end = last == until ? last : last + Self.hour
    }
}
