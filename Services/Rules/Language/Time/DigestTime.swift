package import PushProtocol

/// The local time of a user's digests. Each local date of ``days`` has exactly one digest, except at clock changes.
package struct DigestTime: Hashable, Sendable {
    package var time: LocalTime
    package var days: DigestDays

    package init(time: LocalTime, days: DigestDays = .every) {
        self.time = time
        self.days = days
    }

    /// One digest: its local date and its time.
    package struct Occurrence: Hashable, Sendable {
        package var date: LocalDate
        package var at: Timestamp

        package init(
            date: LocalDate, at: Timestamp
        ) {
            self.date = date
            self.at = at
        }
    }

    /// The minimum time between two digests, also after a change of the time zone or of the digest time.
    package static let minimumInterval = Duration.seconds(6 * 3600)

    /// Returns the first digest after `now`.
    ///
    /// A local time that occurs twice counts the first time. A skipped local time moves to the end of the gap or, if
    /// that is another date, to the minute before the gap. A skipped date has no digest.
    ///
    /// - Parameter last: the previous digest; its date gets no second one.
    package func next(after now: Timestamp, in zone: Zone, last: Occurrence? = nil) -> Occurrence {
        var date = zone.local(now).date.adding(days: -1)
        if let last, last.date >= date { date = last.date.adding(days: 1) }
        while true {
            if days.contains(date), let occasion = occasion(on: date, in: zone, last: last), occasion.at > now {
                return occasion
            }
            date = date.adding(days: 1)
        }
    }

    private func occasion(on date: LocalDate, in zone: Zone, last: Occurrence?) -> Occurrence? {
        guard var at = moment(on: date, in: zone) else { return nil }
        if let last { at = max(at, last.at + DigestTime.minimumInterval) }
        return zone.local(at).date == date ? Occurrence(date: date, at: at) : nil
    }

    private func moment(on date: LocalDate, in zone: Zone) -> Timestamp? {
        switch zone.reading(date, time) {
        case .once(let moment), .twice(first: let moment, last: _): return moment
        case .never(let jump):
            return [jump, jump + .seconds(-60)].first { zone.local($0).date == date }
        }
    }
}
