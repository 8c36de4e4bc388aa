/// A date of the proleptic Gregorian calendar, without a time zone.
struct LocalDate: Hashable, Comparable, Sendable {
    /// Days since 1970-01-01.
    let dayNumber: Int

    init(dayNumber: Int) { self.dayNumber = dayNumber }

    /// - Returns: `nil` for a date that does not exist, such as 30 February.
    init?(year: Int, month: Int, day: Int) {
        guard (1...9999).contains(year), (1...12).contains(month), day >= 1 else { return nil }
        dayNumber = LocalDate.dayNumber(year: year, month: month) + day - 1
        guard self.year == year, self.month == month else { return nil }
    }

    /// `2026-03-29`.
    init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.map(\.utf8.count) == [4, 2, 2],
            text.utf8.allSatisfy({ $0 == UInt8(ascii: "-") || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
            let year = Int(parts[0]), let month = Int(parts[1]), let day = Int(parts[2])
        else { return nil }
        self.init(year: year, month: month, day: day)
    }

    static func < (a: LocalDate, b: LocalDate) -> Bool { a.dayNumber < b.dayNumber }

    func adding(days: Int) -> LocalDate { LocalDate(dayNumber: dayNumber + days) }

    var weekday: Weekday { Weekday.allCases[(dayNumber + 3).remainder(floored: 7)] }
    var year: Int { civil.year }
    var month: Int { civil.month }
    var day: Int { civil.day }

    /// Converts the day number. Years start in March here, so that the leap day is the last day of a year.
    private var civil: (year: Int, month: Int, day: Int) {
        let sinceMarch0 = dayNumber + LocalDate.marchOfYear0
        let era = sinceMarch0.quotient(floored: 146_097)
        let ofEra = sinceMarch0 - era * 146_097
        let yearOfEra = (ofEra - ofEra / 1460 + ofEra / 36_524 - ofEra / 146_096) / 365
        let ofYear = ofEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * ofYear + 2) / 153
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        return (
            yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, ofYear - (153 * monthFromMarch + 2) / 5 + 1
        )
    }

    /// The days from 0000-03-01 to 1970-01-01.
    private static let marchOfYear0 = 719_468

    /// Returns the day number of the first day of a month.
    private static func dayNumber(year: Int, month: Int) -> Int {
        let fromMarch = month > 2 ? month - 3 : month + 9
        let year = month > 2 ? year : year - 1
        let leaps = year.quotient(floored: 4) - year.quotient(floored: 100) + year.quotient(floored: 400)
        return 365 * year + leaps + (153 * fromMarch + 2) / 5 - marchOfYear0
    }
}

extension LocalDate: CustomStringConvertible {
    /// ISO 8601.
    var description: String {
        func digits(_ number: Int, _ count: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, count - text.count)) + text
        }
        return "\(digits(year, 4))-\(digits(month, 2))-\(digits(day, 2))"
    }
}

/// A day of the week, as written in preferences.
enum Weekday: String, Hashable, Sendable, CaseIterable {
    case monday = "mon"
    case tuesday = "tue"
    case wednesday = "wed"
    case thursday = "thu"
    case friday = "fri"
    case saturday = "sat"
    case sunday = "sun"
}

extension Int {
    /// Divides and rounds down; `/` rounds towards zero.
    func quotient(floored divisor: Int) -> Int { (self - remainder(floored: divisor)) / divisor }

    /// Returns the remainder from 0 up to the divisor, also for a negative number.
    func remainder(floored divisor: Int) -> Int {
        let rest = self % divisor
        return rest < 0 ? rest + divisor : rest
    }
}
