import PushProtocol

/// A user's quiet hours: a window of local time on some days of the week.
struct QuietHours: Hashable, Sendable {
    /// The days on which the window **starts**: Friday from 22:00 to 07:00 covers Saturday's early hours.
    var days: Set<Weekday>
    var start: LocalTime
    /// The exclusive end. Before ``start``, it is on the next day. Equal to ``start``, it turns quiet hours off.
    var end: LocalTime

    /// Returns the end of the quiet hours at `now`; `nil` if `now` is outside quiet hours.
    ///
    /// Clock changes extend the window: a start that occurs twice counts the first time, an end that occurs twice the
    /// last time. A skipped local time moves to the end of the gap.
    func release(from now: Timestamp, in zone: Zone) -> Timestamp? {
        var release: Timestamp?
        // Two windows touch only if clocks are set back between them.
        for _ in 0..<QuietHours.mostTouching {
            guard let end = endOfWindow(around: release ?? now, in: zone) else { break }
            release = end
        }
        return release
    }

    private static let mostTouching = 8

    private func endOfWindow(around moment: Timestamp, in zone: Zone) -> Timestamp? {
        let today = zone.local(moment).date
        // From two days ago, because a date can be skipped; until tomorrow, because clocks can go back over midnight.
        return (-2...1).compactMap { window(startingOn: today.adding(days: $0), in: zone) }
            .filter { $0.contains(moment) }.map(\.upperBound).max()
    }

    /// Returns the window that starts on a date; `nil` if none does.
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
