import PushProtocol

/// When something is said that is not said at once: so long before or after what a field of the event names.
struct Schedule: Hashable, Sendable {
    /// The path of a ``WrittenDate``.
    var at: String
    /// Negative: before it.
    var offset: Duration
    /// On that day, where the field names a day and no time.
    var time: LocalTime

    static let usualTime = LocalTime(minuteOfDay: 9 * 60)!
    static let longest = Duration.seconds(400 * 86_400)

    /// What it comes to for one event.
    struct Plan: Hashable, Sendable {
        var due: WrittenDate
        /// What the field names: from then on it is too late to speak of it beforehand. `nil` for what is said after it.
        var end: WrittenDate?
        var time: LocalTime

        func dueAt(in zone: Zone) -> Timestamp { due.moment(in: zone, at: time) }

        /// A day is over when it ends.
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
