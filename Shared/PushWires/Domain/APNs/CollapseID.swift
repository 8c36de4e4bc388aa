/// The rule for `apns-collapse-id`, on the way to APNs and in headers that FCM passes on to Apple.
enum CollapseID {
    /// The most bytes of UTF-8 that Apple takes (`push-protocols` A.4).
    static let maximumBytes = 64

    /// The word for a fault of `text` as a collapse id; `nil` where Apple takes it. Any UTF-8 is allowed that a header field can
    /// hold (RFC 9113 §8.2.1): no control characters, and no space at either end.
    static func problem(with text: String) -> String? {
        guard (1...maximumBytes).contains(text.utf8.count) else { return "not-1-to-64-bytes" }
        let isValue = text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f } && text.first != " " && text.last != " "
        return isValue ? nil : "not-a-header-value"
    }
}
