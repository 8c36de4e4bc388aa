import Foundation
import PushProtocol

/// Dates in HTTP headers (RFC 9110 §5.6.7).
enum HTTPDate {
    static func text(of moment: Timestamp) -> String {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(identifier: "GMT")
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter.string(from: Date(timeIntervalSince1970: Double(moment.seconds)))
    }
}
