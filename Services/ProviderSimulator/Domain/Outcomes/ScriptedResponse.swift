import PushProtocol

/// A scripted response. The provider fills in the members that are not set.
struct ScriptedResponse: Hashable, Sendable {
    enum TimestampField: Hashable, Sendable {
        case absent
        /// This long before the response.
        case ago(Duration)
        case at(Timestamp)
    }

    enum RetryAfter: Hashable, Sendable {
        /// Sent unchanged: seconds, a date, or an invalid value.
        case text(String)
        /// An HTTP date this many seconds after the response.
        case date(in: Int64)
    }

    var status: Int
    /// The APNs reason, documented or not. The token endpoint uses it as `error`.
    var reason: String?
    /// The `timestamp` of an APNs 410.
    var timestamp: TimestampField = .ago(.zero)
    var retryAfter: RetryAfter?
    /// FCM's `errorCode`, and further members of `details`.
    var errorCode: String?
    var details: [JSONValue] = []
    /// Replaces the generated body.
    var body: [UInt8]?
    var contentType: String?
    /// Between HEADERS and DATA.
    var bodyDelay: Duration = .zero
    var omitsID = false
    /// The token endpoint's `expires_in`, a number or a string.
    var expiresIn: JSONValue?

    init(_ status: Int, reason: String? = nil, errorCode: String? = nil) {
        self.status = status
        self.reason = reason
        self.errorCode = errorCode
    }

    /// A modified copy.
    func with(_ change: (inout ScriptedResponse) -> Void) -> ScriptedResponse {
        var copy = self
        change(&copy)
        return copy
    }

    /// The status and reason; `nil` for an acceptance.
    var label: String? {
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

/// The HTTP date format (RFC 9110 §5.6.7): `Thu, 01 Jan 2026 00:00:00 GMT`.
enum HTTPDate {
    private static let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    static func text(of moment: Timestamp) -> String {
        let seconds = max(moment.milliseconds / 1000, 0)
        let day = seconds / 86_400
        let time = seconds % 86_400
        // The civil calendar from the day number, with years that start in March.
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
