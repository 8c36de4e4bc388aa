import Crypto
import FoundationEssentials

/// A secret that signs requests to a webhook (Standard Webhooks 1.0: `whsec_`, then 24 to 64 bytes in Base64).
///
/// Printing shows no part of it.
package struct WebhookSecret: Sendable, CustomStringConvertible, CustomDebugStringConvertible {
    package static let rule = "a webhook's secret is whsec_ and 24–64 bytes in Base64"
    /// The most secrets of a webhook: one, and a second one during a rotation, with room.
    package static let maximumCount = 4

    private let key: SymmetricKey

    /// Returns `nil` for an invalid secret.
    package init?(_ text: some StringProtocol) {
        guard text.hasPrefix("whsec_"), let bytes = Data(base64Encoded: String(text.dropFirst(6))),
            (24...64).contains(bytes.count)
        else { return nil }
        key = SymmetricKey(data: bytes)
    }

    package var description: String { "whsec_…" }
    package var debugDescription: String { description }

    /// The value of the header `webhook-signature`: one signature for each secret.
    ///
    /// - Parameters:
    ///   - id: the value of `webhook-id`; without a full stop.
    ///   - timestamp: the value of `webhook-timestamp`, in seconds.
    package static func signature(
        id: String, timestamp: Int64, body: [UInt8], secrets: [WebhookSecret]
    ) -> String {
        let content = Array("\(id).\(timestamp).".utf8) + body
        return secrets.map { secret in
            let code = HMAC<SHA256>.authenticationCode(for: content, using: secret.key)
            return "v1,\(Data(code).base64EncodedString())"
        }.joined(separator: " ")
    }

    /// Reads a file's content: secrets, separated by white space, one a line.
    ///
    /// - Returns: `nil` if a line is not a secret, or there is none or too many.
    package static func secrets(in text: String) -> [WebhookSecret]? {
        let lines = text.split(whereSeparator: \.isWhitespace).filter { !$0.isEmpty }
        let secrets = lines.compactMap { WebhookSecret($0) }
        guard secrets.count == lines.count, (1...maximumCount).contains(secrets.count) else { return nil }
        return secrets
    }
}
