package import PushProtocol

/// A send time relative to a date or time in the event.
package struct Schedule: Hashable, Sendable {
    /// The path of a ``WrittenDate``; `nil`: the event's time.
    package var at: String?
    /// The distance from that date or time; negative: before it.
    package var offset: Duration
    /// The local time of day for a date without a time.
    package var time: LocalTime
    /// For a live surface: the send time is the next multiple of this time on the clock when the event is decided. So of
    /// several events in this time, the last one is sent, also if they arrive late.
    var every: Duration?

    static let usualTime = LocalTime(minuteOfDay: 9 * 60)!
    package static let longest = Duration.seconds(400 * 86_400)

    package struct Plan: Hashable, Sendable {
        package var due: WrittenDate
        /// The event's date or time, after which a reminder is too late. `nil` if the offset is not negative.
        package var end: WrittenDate?
        package var time: LocalTime
        /// Replaces ``due``: the next multiple of this time.
        package var every: Duration?

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
        if let every { return Plan(due: .moment(scope.moment), end: nil, time: time, every: every) }
        guard let at else { return Plan(due: .moment(scope.moment + offset), end: nil, time: time) }
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

extension Timestamp {
    /// Returns the next multiple of `step` since 1970.
    package func next(_ step: Duration) -> Timestamp {
        let step = step.components.seconds * 1000
        return Timestamp(milliseconds: milliseconds / step * step) + .milliseconds(step)
    }
}
