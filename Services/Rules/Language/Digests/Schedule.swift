package import PushProtocol

/// A send time relative to a date or time in the event.
package struct Schedule: Hashable, Sendable {
    /// The path of a ``WrittenDate``.
    package var at: String
    /// The distance from that date or time; negative: before it.
    package var offset: Duration
    /// The local time of day for a date without a time.
    package var time: LocalTime

    static let usualTime = LocalTime(minuteOfDay: 9 * 60)!
    package static let longest = Duration.seconds(400 * 86_400)

    package struct Plan: Hashable, Sendable {
        package var due: WrittenDate
        /// The event's date or time, after which a reminder is too late. `nil` if the offset is not negative.
        package var end: WrittenDate?
        package var time: LocalTime

        package func dueAt(in zone: Zone) -> Timestamp { due.moment(in: zone, at: time) }

        /// Returns the timestamp of ``end``. A date ends at its last midnight.
        package func endsAt(in zone: Zone) -> Timestamp? {
            switch end {
            case nil: nil
            case .moment(let moment): moment
            case .day(let date): WrittenDate.day(date.adding(days: 1)).moment(in: zone, at: .midnight)
            }
        }
    }

    package func plan(_ scope: Scope) throws(PlacedProblem) -> Plan {
        guard let value = scope[at] else { throw PlacedProblem("policy.schedule.at", .missing(path: at)) }
        guard let date = WrittenDate(value) else {
            throw PlacedProblem("policy.schedule.at", .unsuitable(path: at, expected: WrittenDate.expectation))
        }
        return Plan(due: date.moved(by: offset), end: offset < .zero ? date : nil, time: time)
    }
}

extension LocalTime {
    static let midnight = LocalTime(minuteOfDay: 0)!
}
