import Foundation
import PushProtocol

/// A zone of the tz database, and the one place where moments become local times and local times moments.
///
/// Nothing here adds 24 hours or 60 minutes: a local day may have 23, 23½, 25 or no hours at all. Foundation tells the
/// zone's distance from UTC at a moment; everything else follows from that (`messaging-and-data` §6.5).
struct Zone: Hashable, Sendable {
    /// As it was asked for: a name of the tz database, links such as `US/Eastern` included.
    let name: String
    /// For writing dates only; what a clock shows is computed here.
    let timeZone: TimeZone

    static let utc = Zone(unchecked: "UTC", .gmt)

    /// - Returns: `nil` for what is not a name of the tz database, abbreviations (`EST`) and offsets (`GMT+3`) included:
    ///   they know nothing of daylight saving.
    init?(name: String) {
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

    /// The release of the tz database in use, such as `2025b`.
    static var databaseVersion: String { TimeZone.timeZoneDataVersion }

    /// Seconds east of UTC.
    func offset(at moment: Timestamp) -> Int { offset(atSecond: Int(moment.seconds)) }

    /// What the calendar and the clock on the wall show, the latter as seconds since midnight.
    func local(_ moment: Timestamp) -> (date: LocalDate, second: Int) {
        let wall = Int(moment.seconds) + offset(at: moment)
        return (LocalDate(dayNumber: wall.quotient(floored: 86_400)), wall.remainder(floored: 86_400))
    }

    /// When the wall shows a date and time.
    enum Reading: Hashable, Sendable {
        case once(Timestamp)
        /// Clocks were put back over it.
        case twice(first: Timestamp, last: Timestamp)
        /// Clocks are put forward over it at this moment, or the whole date is left out.
        case never(jump: Timestamp)
    }

    func reading(_ date: LocalDate, _ time: LocalTime) -> Reading {
        let wall = date.dayNumber * 86_400 + time.minuteOfDay * 60
        // Zones are from 12 hours behind UTC to 14 ahead of it, so the moments in question lie between these two, and no
        // zone has ever changed twice in the time between them.
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

    /// The first second after `early` whose offset is another, given that the one at `late` is.
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
    /// - Parameter second: since 1970.
    init(second: Int) { self.init(milliseconds: Int64(second) * 1000) }
}
