import Foundation
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
    /// The reason of APNs or of a push service, documented or not. The token endpoint uses it as `error`.
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

    /// Whether the provider accepts the request: 200, and a push service of browsers 201.
    var isAcceptance: Bool { status == 200 || status == 201 }

    /// The status and reason; `nil` for an acceptance.
    var label: String? {
        isAcceptance ? nil : [String(status), reason ?? errorCode].compactMap(\.self).joined(separator: " ")
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
    private static let format = Date.VerbatimFormatStyle(
        format: """
            \(weekday: .abbreviated), \(day: .twoDigits) \(month: .abbreviated) \(year: .defaultDigits) \
            \(hour: .twoDigits(clock: .twentyFourHour, hourCycle: .zeroBased)):\(minute: .twoDigits):\
            \(second: .twoDigits) GMT
            """,
        locale: Locale(identifier: "en_US_POSIX"), timeZone: .gmt, calendar: Calendar(identifier: .gregorian))

    static func text(of moment: Timestamp) -> String { moment.date.formatted(format) }
}
