import FoundationEssentials

/// A device token: APNs hexadecimal, an FCM registration token, or a Web Push subscription.
///
/// It prints as `‹redacted›`, so logs, errors and metrics cannot contain it. ``secret`` is the text. It leaves the
/// registry only inside a ``Push``.
package struct DeviceToken: Hashable, Sendable {
    /// The token's text. Never log it.
    package let secret: String

    package init(secret: String) { self.secret = secret }

    /// The maximum length of any provider's token, in bytes.
    package static let maximumLength = 4096

    /// A well-formed token of `provider` in its stored form, or `nil`.
    ///
    /// APNs tokens are hexadecimal of variable length, stored in lower case. Device management reports 32 bytes in
    /// base64, converted to hexadecimal here. FCM tokens are opaque and case-sensitive: visible ASCII, stored
    /// unchanged (ProviderFacts.md §C.1). The text of a Web Push subscription is JSON of visible ASCII. `Providers` checks
    /// its members.
    package init?(_ text: String, for provider: Provider) {
        let bytes = text.utf8
        guard !bytes.isEmpty, bytes.count <= DeviceToken.maximumLength else { return nil }
        switch provider {
        case .apns:
            if bytes.count.isMultiple(of: 2), bytes.count <= 512, let digits = Hexadecimal.lowerCaseDigits(text) {
                secret = digits
            } else if let hex = DeviceToken.hex(ofBase64: text) {
                secret = hex
            } else {
                return nil
            }
        case .fcm, .webpush:
            guard text.isVisibleASCII else { return nil }
            secret = text
        }
    }
}

extension DeviceToken {
    /// The hexadecimal form of 32 bytes in base64; `nil` for any other text.
    private static func hex(ofBase64 text: String) -> String? {
        guard text.utf8.count == 44, text.hasSuffix("="), let data = Data(base64Encoded: text), data.count == 32 else {
            return nil
        }
        return data.withUnsafeBytes { Hexadecimal.text(of: $0) }
    }
}

extension DeviceToken: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "‹redacted›" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension DeviceToken: Codable {
    package init(from decoder: any Decoder) throws {
        secret = try decoder.singleValueContainer().decode(String.self)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(secret)
    }
}
