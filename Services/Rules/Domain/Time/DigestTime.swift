import PushProtocol

/// The local time at which a person wants digests: at most one on a local date, and on every one.
struct DigestTime: Hashable, Sendable {
    var time: LocalTime

    /// One digest: the local date that it is for, and its moment.
    struct Occurrence: Hashable, Sendable {
        var date: LocalDate
        var at: Timestamp
    }

    /// Between two digests, whatever became of the zone or of the time that was asked for.
    static let leastPause = Duration.seconds(6 * 3600)

    /// The first digest after `now`.
    ///
    /// A time that comes twice is meant the first time; one that clocks jump over is the moment after the jump or, where
    /// that is another day's, the last minute before it. A date that is left out has no digest.
    ///
    /// - Parameter last: the digest before; its date has had its own.
    func next(after now: Timestamp, in zone: Zone, last: Occurrence? = nil) -> Occurrence {
        var date = zone.local(now).date.adding(days: -1)
        if let last, last.date >= date { date = last.date.adding(days: 1) }
        while true {
            if let occasion = occasion(on: date, in: zone, last: last), occasion.at > now { return occasion }
            date = date.adding(days: 1)
        }
    }

    private func occasion(on date: LocalDate, in zone: Zone, last: Occurrence?) -> Occurrence? {
        guard var at = moment(on: date, in: zone) else { return nil }
        if let last { at = max(at, last.at + DigestTime.leastPause) }
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
