import PushProtocol

/// A send time relative to a date or time in the event.
struct Schedule: Hashable, Sendable {
    /// The path of a ``WrittenDate``.
    var at: String
    /// The distance from that date or time; negative: before it.
    var offset: Duration
    /// The local time of day for a date without a time.
    var time: LocalTime

    static let usualTime = LocalTime(minuteOfDay: 9 * 60)!
    static let longest = Duration.seconds(400 * 86_400)

    /// The schedule for one event.
    struct Plan: Hashable, Sendable {
        var due: WrittenDate
        /// The event's date or time, after which a reminder is too late. `nil` if the offset is not negative.
        var end: WrittenDate?
        var time: LocalTime

        func dueAt(in zone: Zone) -> Timestamp { due.moment(in: zone, at: time) }

        /// Returns the timestamp of ``end``. A date ends at its last midnight.
        func endsAt(in zone: Zone) -> Timestamp? {
            switch end {
            case nil: nil
            case .moment(let moment): moment
            case .day(let date): WrittenDate.day(date.adding(days: 1)).moment(in: zone, at: .midnight)
            }
        }
    }

    func plan(_ scope: Scope) throws(PlacedProblem) -> Plan {
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
