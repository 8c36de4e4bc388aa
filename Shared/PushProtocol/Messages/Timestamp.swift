package import FoundationEssentials

/// A moment, on the wire as whole milliseconds since 1970-01-01T00:00:00Z, which is what APNs' `timestamp` counts and
/// what registration times are compared in. Anybody may have written one: where sums and differences would not be moments any
/// more, they are the last or the first there is.
package struct Timestamp: Hashable, Comparable, Sendable {
    package let milliseconds: Int64

    package init(milliseconds: Int64) { self.milliseconds = milliseconds }

    /// Rounded down. Half a microsecond is granted, since a `Date` of today does not hold a millisecond exactly and one
    /// less would be another registration's.
    package init(_ date: Date) { milliseconds = Int64((date.timeIntervalSince1970 * 1000 + 0.0005).rounded(.down)) }

    /// The clock of this machine, now.
    package static var now: Timestamp { Timestamp(Date()) }

    package var date: Date { Date(timeIntervalSince1970: Double(milliseconds) / 1000) }

    /// Whole Unix seconds, rounded down: the unit of `apns-expiration`.
    package var seconds: Int64 { Int64((Double(milliseconds) / 1000).rounded(.down)) }

    package static func < (a: Timestamp, b: Timestamp) -> Bool { a.milliseconds < b.milliseconds }

    package static func + (a: Timestamp, b: Duration) -> Timestamp {
        Timestamp(milliseconds: a.milliseconds.plus(b.wholeMilliseconds))
    }

    package static func - (a: Timestamp, b: Duration) -> Timestamp { a + (.zero - b) }

    /// How long after `b` this moment is; negative if before.
    package static func - (a: Timestamp, b: Timestamp) -> Duration {
        let (difference, overflows) = a.milliseconds.subtractingReportingOverflow(b.milliseconds)
        return .milliseconds(overflows ? (a < b ? .min : .max) : difference)
    }

    /// The last moment that is no later and lies a whole number of `step` after 1970 began.
    ///
    /// - Parameter step: whole milliseconds.
    package func rounded(downTo step: Duration) -> Timestamp {
        let length = step.wholeMilliseconds
        let offset = milliseconds % length
        return Timestamp(milliseconds: milliseconds.plus(offset < 0 ? -offset - length : -offset))
    }
}

extension Int64 {
    /// The sum, or the last number there is in its direction.
    package func plus(_ other: Int64) -> Int64 {
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
