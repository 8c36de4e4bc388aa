import Foundation
import PushProtocol

/// Values in the spelling of other systems.
enum ForeignValue {
    /// The platform that a system's word means: `ios`, `android`, or a browser (`web`).
    enum Platform: Hashable, Sendable {
        case ios
        case android
        case web
        /// A system without a provider here.
        case other

        /// `nil` for an unknown word. Case does not count.
        init?(_ word: String) {
            switch word.lowercased() {
            case "ios", "iphone", "ipad", "ipod", "ipod touch", "iphone os", "ipados", "apns", "ios_token": self = .ios
            case "android", "fcm", "gcm": self = .android
            case "web", "web_push", "webpush", "browser", "chrome", "firefox", "safari", "edge": self = .web
            case "windows", "windows_wns", "windows_mpns", "wns", "mpns", "adm", "amazon", "huawei", "hms",
                "simplepush",
                "macos", "osx", "tvos", "email", "sms":
                self = .other
            default: return nil
            }
        }
    }

    /// A time as RFC 3339: from Unix seconds or milliseconds, RFC 3339, or `2026-01-31 12:00:00`, which is UTC.
    ///
    /// - Returns: `nil` for any other text.
    static func time(_ text: String) -> String? {
        if let number = Int64(text) {
            // Milliseconds since 2001 have 12 digits or more; seconds reach 12 digits in the year 5138.
            let seconds = number >= 100_000_000_000 ? Double(number) / 1000 : Double(number)
            guard seconds > 0, seconds < 253_402_300_800 else { return nil }
            return RFC3339.string(from: Date(timeIntervalSince1970: seconds))
        }
        var text = text
        for zone in [" UTC", " GMT", " +0000", " +00:00", "+00:00", "+0000", "+00", "Z"] where text.hasSuffix(zone) {
            text.removeLast(zone.count)
            break
        }
        let parts = text.split(whereSeparator: { $0 == " " || $0 == "T" })
        guard let date = parts.first, date.count == 10, parts.count <= 2 else { return nil }
        let clock = parts.count == 2 ? parts[1] : "00:00:00"
        // A time zone other than UTC.
        guard !clock.contains("+"), !clock.contains("-") else { return zoned(text) }
        let whole = clock.prefix { $0 != "." }
        let fraction = clock.dropFirst(whole.count).dropFirst()
        guard fraction.allSatisfy(\.isASCIIDigit), let start = RFC3339.date(from: "\(date)T\(whole)Z") else {
            return nil
        }
        let thousandths = Int(fraction.prefix(3).padding(toLength: 3, withPad: "0", startingAt: 0)) ?? 0
        return RFC3339.string(from: start + Double(thousandths) / 1000)
    }

    private static func zoned(_ text: String) -> String? {
        RFC3339.date(from: text).map { RFC3339.string(from: $0) }
    }

    /// A text that a registration may have, or `nil`: other systems store values that the registry refuses.
    static func word(_ text: String?, _ limit: Int = 64) -> String? {
        text.flatMap { $0.utf8.count <= limit && $0.isVisibleASCII && !$0.isEmpty ? $0 : nil }
    }

    /// An id: a text, or a number as a text.
    static func id(_ value: JSONValue?) -> String? {
        switch value {
        case .string(let text) where !text.isEmpty: text
        case .int(let number): String(number)
        default: nil
        }
    }
}

extension Character {
    fileprivate var isASCIIDigit: Bool { "0"..."9" ~= self }
}
