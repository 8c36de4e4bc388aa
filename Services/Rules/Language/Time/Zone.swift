package import PushProtocol
import Foundation

/// A time zone of the tz database. All conversions between timestamps and local times are here.
///
/// A local day can have 23, 23½, 25 or 0 hours, so the code never adds 24 hours. It takes only the UTC offset at a
/// timestamp from Foundation (`Shared/Messaging/BrokerFacts.md`, “Local times around DST changes”).
package struct Zone: Hashable, Sendable {
    /// The given name in the tz database; can be a link such as `US/Eastern`.
    package let name: String
    /// Only for formatting dates; ``local(_:)`` computes local times.
    let timeZone: TimeZone

    static let utc = Zone(unchecked: "UTC", .gmt)

    /// - Returns: `nil` for a name that is not in the tz database. Abbreviations (`EST`) and offsets (`GMT+3`) are also
    ///   rejected, because they have no daylight saving time.
    package init?(name: String) {
        if name == "UTC" {
            self = .utc
            return
        }
        guard name.contains("/"), !name.hasPrefix("GMT"), let zone = TimeZone(identifier: name) else { return nil }
        self.init(unchecked: name, zone)
    }

    private init(unchecked name: String, _ timeZone: TimeZone) {
        self.name = name
        self.timeZone = timeZone
    }

    /// Seconds east of UTC.
    package func offset(at moment: Timestamp) -> Int { offset(atSecond: Int(moment.seconds)) }

    /// Returns the local date, and the local time in seconds since midnight.
    package func local(_ moment: Timestamp) -> (date: LocalDate, second: Int) {
        let wall = Int(moment.seconds) + offset(at: moment)
        return (LocalDate(dayNumber: wall.quotient(floored: 86_400)), wall.remainder(floored: 86_400))
    }

    /// The timestamps of a local date and time.
    package enum Reading: Hashable, Sendable {
        case once(Timestamp)
        /// Clocks are set back over it.
        case twice(first: Timestamp, last: Timestamp)
        /// Clocks are set forward over it at `jump`, or the zone skips the whole date.
        case never(jump: Timestamp)
    }

    package func reading(_ date: LocalDate, _ time: LocalTime) -> Reading {
        let wall = date.dayNumber * 86_400 + time.minuteOfDay * 60
        // UTC offsets are from -12 to +14 hours, so the timestamp is between `early` and `late`. No zone has ever
        // changed twice within that span.
        let early = wall - Zone.mostAhead
        let late = wall + Zone.mostBehind
        let before = offset(atSecond: early)
        let after = offset(atSecond: late)
        if before == after { return .once(Timestamp(second: wall - before)) }
        let first = wall - before
        let last = wall - after
        switch (offset(atSecond: first) == before, offset(atSecond: last) == after) {
        case (true, true): return .twice(first: Timestamp(second: first), last: Timestamp(second: last))
        case (true, false): return .once(Timestamp(second: first))
        case (false, true): return .once(Timestamp(second: last))
        case (false, false): return .never(jump: Timestamp(second: change(from: early, to: late)))
        }
    }

    private static let mostAhead = 15 * 3600
    private static let mostBehind = 13 * 3600

    /// Returns the first second after `early` with another offset. The offset at `late` must differ.
    private func change(from early: Int, to late: Int) -> Int {
        let before = offset(atSecond: early)
        var (low, high) = (early, late)
        while high - low > 1 {
            let middle = low + (high - low) / 2
            if offset(atSecond: middle) == before { low = middle } else { high = middle }
        }
        return high
    }

    private func offset(atSecond second: Int) -> Int {
        timeZone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(second)))
    }
}

extension Timestamp {
    package init(second: Int) { self.init(milliseconds: Int64(second) * 1000) }
}
