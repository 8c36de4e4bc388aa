import PushProtocol

/// When a person wants no noise: from one local time up to another, on some days of the week.
struct QuietHours: Hashable, Sendable {
    /// The days on which the window **starts**: Friday from 22:00 to 07:00 covers Saturday's early hours.
    var days: Set<Weekday>
    var start: LocalTime
    /// Not itself quiet. At or before ``start`` it is the next day's; the same time turns quiet hours off.
    var end: LocalTime

    /// When noise is allowed again, if it is not at `now`.
    ///
    /// What is unclear errs towards silence: a start that comes twice is the first, an end that comes twice the last; one
    /// that clocks jump over is the moment after the jump.
    func release(from now: Timestamp, in zone: Zone) -> Timestamp? {
        var release: Timestamp?
        // Two windows touch only where clocks are put back between them.
        for _ in 0..<QuietHours.mostTouching {
            guard let end = endOfWindow(around: release ?? now, in: zone) else { break }
            release = end
        }
        return release
    }

    private static let mostTouching = 8

    private func endOfWindow(around moment: Timestamp, in zone: Zone) -> Timestamp? {
        let today = zone.local(moment).date
        // From two days ago, for a date may be left out; until tomorrow, for clocks may be put back over midnight.
        return (-2...1).compactMap { window(startingOn: today.adding(days: $0), in: zone) }
            .filter { $0.contains(moment) }.map(\.upperBound).max()
    }

    /// The window that starts on a date; `nil` where none does.
    func window(startingOn date: LocalDate, in zone: Zone) -> Range<Timestamp>? {
        guard start != end, days.contains(date.weekday) else { return nil }
        let begin =
            switch zone.reading(date, start) {
            case .once(let moment), .twice(first: let moment, last: _), .never(jump: let moment): moment
            }
        let finish =
            switch zone.reading(start < end ? date : date.adding(days: 1), end) {
            case .once(let moment), .twice(first: _, last: let moment), .never(jump: let moment): moment
            }
        return begin < finish ? begin..<finish : nil
    }
}
