package import FoundationEssentials

/// Parses and formats RFC 3339 times, with or without fractional seconds.
///
/// A year has four digits, so the range is 0001 to 9999. Foundation's calendar traps on dates far beyond it.
package enum RFC3339 {
    /// Seconds since 1970 of 0001-01-01T00:00:00Z in Foundation's calendar, and in the last millisecond of 9999.
    private static let range = -62_135_769_600.0...253_402_300_799.9995

    /// Returns `nil` for a text in another form, and for a year outside 0001 to 9999.
    package static func date(from text: String) -> Date? {
        let date =
            (try? Date(text, strategy: .iso8601))
            ?? (try? Date(text, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: true)))
        guard let date, range.contains(date.timeIntervalSince1970) else { return nil }
        return date
    }

    /// UTC with milliseconds, rounded down: `2026-01-01T00:00:00.000Z`. A date outside the range becomes its end.
    package static func string(from date: Date) -> String {
        // A `Date` cannot represent every millisecond exactly; without this, some format as the previous one.
        clamped(date).addingTimeInterval(0.0000005).formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }

    /// UTC with whole seconds, rounded down: `2026-01-01T00:00:00Z`. A date outside the range becomes its end.
    package static func seconds(from date: Date) -> String { clamped(date).formatted(.iso8601) }

    private static func clamped(_ date: Date) -> Date {
        let seconds = date.timeIntervalSince1970
        return range.contains(seconds)
            ? date : Date(timeIntervalSince1970: seconds < 0 ? range.lowerBound : range.upperBound)
    }
}
