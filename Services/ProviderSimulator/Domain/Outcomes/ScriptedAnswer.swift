import PushProtocol

/// A scripted answer; what it leaves open is filled in as the provider would.
struct ScriptedAnswer: Hashable, Sendable {
    enum Moment: Hashable, Sendable {
        case absent
        /// So long before the answer.
        case ago(Duration)
        case at(Timestamp)
    }

    enum RetryAfter: Hashable, Sendable {
        /// Sent as it is: seconds, a date, or nonsense.
        case text(String)
        /// An HTTP date so many seconds after the answer.
        case date(in: Int64)
    }

    var status: Int
    /// APNs' word; need not be one that Apple documents. Google's token endpoint uses it as `error`.
    var reason: String?
    /// Goes with a 410 of APNs.
    var timestamp: Moment = .ago(.zero)
    var retryAfter: RetryAfter?
    /// FCM's `errorCode`, and what else stands in `details`.
    var errorCode: String?
    var details: [JSONValue] = []
    /// Sent verbatim in place of the rendered body.
    var body: [UInt8]?
    var contentType: String?
    /// Between HEADERS and DATA.
    var bodyDelay: Duration = .zero
    /// Leaves `apns-id` out.
    var omitsID = false
    /// The token endpoint's `expires_in`, a number or a string.
    var expiresIn: JSONValue?

    init(_ status: Int, reason: String? = nil, errorCode: String? = nil) {
        self.status = status
        self.reason = reason
        self.errorCode = errorCode
    }

    /// The same with some of it changed.
    func with(_ change: (inout ScriptedAnswer) -> Void) -> ScriptedAnswer {
        var copy = self
        change(&copy)
        return copy
    }

    /// Its status and the provider's word for it; `nil` for an acceptance.
    var word: String? {
        status == 200 ? nil : [String(status), reason ?? errorCode].compactMap(\.self).joined(separator: " ")
    }

    /// The `retry-after` header, if there is one.
    func retryAfterHeader(at now: Timestamp) -> Header? {
        switch retryAfter {
        case nil: nil
        case .text(let text): Header("retry-after", text)
        case .date(let seconds): Header("retry-after", HTTPDate.text(of: now + .seconds(seconds)))
        }
    }
}

/// The date of HTTP's headers (RFC 9110 §5.6.7): `Thu, 01 Jan 2026 00:00:00 GMT`.
enum HTTPDate {
    private static let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    static func text(of moment: Timestamp) -> String {
        let seconds = max(moment.milliseconds / 1000, 0)
        let day = seconds / 86_400
        let time = seconds % 86_400
        // The civil calendar from the day number, in years that begin in March.
        let era = (day + 719_468) / 146_097
        let dayOfEra = (day + 719_468) % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let march = (5 * dayOfYear + 2) / 153
        let month = march < 10 ? march + 3 : march - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        let date = "\(two(dayOfYear - (153 * march + 2) / 5 + 1)) \(months[Int(month) - 1]) \(year)"
        return "\(days[Int(day % 7)]), \(date) \(two(time / 3600)):\(two(time / 60 % 60)):\(two(time % 60)) GMT"
    }

    private static func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
