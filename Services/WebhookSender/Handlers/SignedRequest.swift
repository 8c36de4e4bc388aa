import FoundationEssentials
import PushProtocol
import ServiceKit

/// The headers of a request to a webhook (Standard Webhooks 1.0).
enum SignedRequest {
    /// - Parameters:
    ///   - id: the report's id, which is the same at each attempt.
    ///   - body: the CloudEvent.
    static func headers(
        id: UUID, body: [UInt8], secrets: [WebhookSecret], at now: Timestamp
    ) -> [(name: String, value: String)] {
        let id = id.uuidString.lowercased()
        return [
            ("Content-Type", CloudEvents.structuredContentType), ("User-Agent", "Heliograph/\(Build.version)"),
            ("webhook-id", id), ("webhook-timestamp", "\(now.seconds)"),
            (
                "webhook-signature",
                WebhookSecret.signature(id: id, timestamp: now.seconds, body: body, secrets: secrets)
            ),
        ]
    }
}
