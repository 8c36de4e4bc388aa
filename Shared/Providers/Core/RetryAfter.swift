package import PushProtocol

/// The header `retry-after`: seconds, or an HTTP date (RFC 9110 §10.2.3).
package enum RetryAfter {
    /// The delay from `now`; `nil` if the header is absent, unreadable, zero, past or beyond a week.
    package static func delay(_ text: String?, now: Timestamp) -> Duration? {
        guard let text else { return nil }
        if let seconds = Int64(text) {
            return (1...maximumSeconds).contains(seconds) ? .seconds(seconds) : nil
        }
        guard let moment = date(text) else { return nil }
        let delay = moment - now
        return delay > .zero && delay <= .seconds(maximumSeconds) ? delay : nil
    }

    private static let maximumSeconds: Int64 = 7 * 24 * 3600

    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// Parses an IMF-fixdate: `Sun, 06 Nov 1994 08:49:37 GMT`.
    private static func date(_ text: String) -> Timestamp? {
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 6, words[0].hasSuffix(","), words[5] == "GMT",
            let day = Int64(words[1]), (1...31).contains(day),
            let month = months.firstIndex(of: String(words[2])),
            let year = Int64(words[3]), (1970...9999).contains(year)
        else { return nil }
        let clock = words[4].split(separator: ":", omittingEmptySubsequences: false).compactMap { Int64($0) }
        guard clock.count == 3, (0..<24).contains(clock[0]), (0..<60).contains(clock[1]), (0...60).contains(clock[2])
        else { return nil }
        let days = daysSince1970(year: year, month: Int64(month) + 1, day: day)
        return Timestamp(milliseconds: (days * 86400 + clock[0] * 3600 + clock[1] * 60 + clock[2]) * 1000)
    }

    /// Days since 1970 in the proleptic Gregorian calendar. Years begin in March, so that the leap day comes last.
    private static func daysSince1970(year: Int64, month: Int64, day: Int64) -> Int64 {
        let year = month <= 2 ? year - 1 : year
        let era = year / 400
        let yearOfEra = year - era * 400
        let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }
}
