package import FoundationEssentials

/// Parses and formats RFC 3339 times, with or without fractional seconds.
package enum RFC3339 {
    package static func date(from text: String) -> Date? {
        (try? Date(text, strategy: .iso8601))
            ?? (try? Date(text, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: true)))
    }

    /// UTC with milliseconds, rounded down: `2026-01-01T00:00:00.000Z`.
    package static func string(from date: Date) -> String {
        // A `Date` cannot represent every millisecond exactly; without this, some format as the previous one.
        date.addingTimeInterval(0.0000005).formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }

    /// UTC with whole seconds, rounded down: `2026-01-01T00:00:00Z`.
    package static func seconds(from date: Date) -> String { date.formatted(.iso8601) }
}
