/// An FCM topic, without the `/topics/` prefix of the SDKs (Firebase: Send messages to topics).
package struct FCMTopic: ValidatedString {
    package static let rule = "an FCM topic is 1–900 characters of a–z, A–Z, 0–9 and - _ . ~ %"
    /// The maximum length, in characters.
    package static let maximumLength = 900

    package let rawValue: String

    package init?(rawValue: String) {
        guard rawValue.utf8.count <= Self.maximumLength, Self.isName(rawValue) else { return nil }
        self.rawValue = rawValue
    }

    /// Whether `text` has at least one character, all of `a-z A-Z 0-9 - _ . ~ %`. Applies to topics and analytics
    /// labels.
    package static func isName(_ text: some StringProtocol) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."),
                    UInt8(ascii: "~"), UInt8(ascii: "%"):
                    true
                default: false
                }
            }
    }
}
