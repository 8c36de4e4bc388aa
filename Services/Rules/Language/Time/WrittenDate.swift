package import PushProtocol
import Foundation

/// A date or time in an event: `2026-03-31`, the same date in every time zone, or an RFC 3339 time.
package enum WrittenDate: Hashable, Sendable {
    case day(LocalDate)
    case moment(Timestamp)

    static let expectation = "a date (2026-03-31) or a time (2026-03-31T09:00:00Z)"

    init?(_ text: String) {
        if let date = LocalDate(text) {
            self = .day(date)
        } else if let date = RFC3339.date(from: text) {
            self = .moment(Timestamp(date))
        } else {
            return nil
        }
    }

    init?(_ value: JSONValue) {
        guard let text = value.string else { return nil }
        self.init(text)
    }

    func moment(in zone: Zone, at time: LocalTime) -> Timestamp {
        switch self {
        case .moment(let moment): moment
        case .day(let date):
            switch zone.reading(date, time) {
            case .once(let moment), .twice(first: let moment, last: _), .never(jump: let moment): moment
            }
        }
    }

    /// Returns the value moved by `offset`. A date moves by calendar days, a time by days of 24 hours.
    func moved(by offset: Duration) -> WrittenDate {
        switch self {
        case .moment(let moment): .moment(moment + offset)
        case .day(let date): .day(date.adding(days: Int(offset.components.seconds / 86_400)))
        }
    }

    /// Formats the value for a recipient; `nil` if it lacks the requested time.
    ///
    /// - Parameter hasTime: whether to show the time; a date has none.
    func text(_ localization: Localization, hasDate: Bool, hasTime: Bool) -> String? {
        let locale = Locale(identifier: localization.language.tag)
        switch self {
        case .day(let date):
            guard hasDate, !hasTime else { return nil }
            let noon = Date(timeIntervalSince1970: Double(date.dayNumber) * 86_400 + 43_200)
            return noon.formatted(
                Date.FormatStyle(date: .long, time: .omitted, locale: locale, timeZone: .gmt))
        case .moment(let moment):
            return moment.date.formatted(
                Date.FormatStyle(
                    date: hasDate ? .long : .omitted, time: hasTime ? .shortened : .omitted, locale: locale,
                    timeZone: localization.zone.timeZone))
        }
    }
}
