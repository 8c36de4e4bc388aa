package import FoundationEssentials

/// A time in whole milliseconds since 1970-01-01T00:00:00Z, the unit of APNs' `timestamp`.
///
/// Wire values are untrusted: sums and differences saturate.
package struct Timestamp: Hashable, Comparable, Sendable {
    package let milliseconds: Int64

    package init(milliseconds: Int64) { self.milliseconds = milliseconds }

    /// Rounded down after adding half a microsecond, because a `Date` cannot represent every millisecond exactly. A date
    /// out of range becomes its end.
    package init(_ date: Date) {
        let rounded = (date.timeIntervalSince1970 * 1000 + 0.0005).rounded(.down)
        milliseconds = Int64(exactly: rounded) ?? (rounded > 0 ? .max : .min)
    }

    /// The current time of this machine.
    package static var now: Timestamp { Timestamp(Date()) }

    package var date: Date { Date(timeIntervalSince1970: Double(milliseconds) / 1000) }

    /// Whole Unix seconds, rounded down: the unit of `apns-expiration`.
    package var seconds: Int64 { Int64((Double(milliseconds) / 1000).rounded(.down)) }

    package static func < (a: Timestamp, b: Timestamp) -> Bool { a.milliseconds < b.milliseconds }

    package static func + (a: Timestamp, b: Duration) -> Timestamp {
        Timestamp(milliseconds: a.milliseconds.addingSaturated(b.wholeMilliseconds))
    }

    package static func - (a: Timestamp, b: Duration) -> Timestamp { a + (.zero - b) }

    /// The interval from `b` to `a`; negative if `a` is earlier.
    package static func - (a: Timestamp, b: Timestamp) -> Duration {
        let (difference, overflows) = a.milliseconds.subtractingReportingOverflow(b.milliseconds)
        return .milliseconds(overflows ? (a < b ? .min : .max) : difference)
    }

    /// The latest multiple of `step` since 1970 that is not after this time.
    ///
    /// - Parameter step: whole milliseconds.
    package func rounded(downTo step: Duration) -> Timestamp {
        let length = step.wholeMilliseconds
        let offset = milliseconds % length
        return Timestamp(milliseconds: milliseconds.addingSaturated(offset < 0 ? -offset - length : -offset))
    }
}

extension Int64 {
    /// The sum, clamped to the range of `Int64`.
    package func addingSaturated(_ other: Int64) -> Int64 {
        let (sum, overflows) = addingReportingOverflow(other)
        return overflows ? (other < 0 ? .min : .max) : sum
    }
}

extension Timestamp: Codable {
    package init(from decoder: any Decoder) throws {
        milliseconds = try decoder.singleValueContainer().decode(Int64.self)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(milliseconds)
    }
}
