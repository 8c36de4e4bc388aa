/// Validates `apns-collapse-id`, for APNs and for APNs headers in FCM messages.
enum CollapseID {
    /// The maximum size, in bytes of UTF-8 (Apple: Sending notification requests to APNs).
    static let maximumBytes = 64

    /// The problem with `text` as a collapse id; `nil` if it is valid. Must be a valid header field value (RFC 9113
    /// §8.2.1): no control characters, and no space at either end.
    static func problem(with text: String) -> String? {
        guard (1...maximumBytes).contains(text.utf8.count) else { return "not-1-to-64-bytes" }
        let isValue = text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f } && text.first != " " && text.last != " "
        return isValue ? nil : "not-a-header-value"
    }
}
