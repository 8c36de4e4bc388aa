import FoundationEssentials

/// What a provider hands to an app on a device and what addresses a push: an APNs device token (hex) or an FCM
/// registration token.
///
/// It prints as `‹redacted›` everywhere, so that no log line, error or metric can carry it by accident; the text itself
/// is ``secret``, and it leaves the registry only inside a ``Push``.
package struct DeviceToken: Hashable, Sendable {
    /// The token itself. Never log it.
    package let secret: String

    package init(secret: String) { self.secret = secret }

    /// The longest accepted token of any provider, in bytes.
    package static let maximumLength = 4096

    /// A well-formed token of `provider`, normalised as it is stored, or `nil`.
    ///
    /// APNs tokens are hex of no fixed length, stored in lower case; device management hands its 32 bytes out in base64,
    /// which becomes hex here, at the border. FCM tokens are opaque and case-sensitive: visible
    /// ASCII, never trimmed or re-encoded (`push-protocols` C.1).
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
        case .fcm:
            guard text.isVisibleASCII else { return nil }
            secret = text
        }
    }
}

extension DeviceToken {
    /// The hex form of 32 bytes in base64, which always end in one `=`; `nil` for anything else.
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
