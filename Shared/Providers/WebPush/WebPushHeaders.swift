import PushProtocol
import Crypto

/// The header fields of a Web Push request that do not depend on the subscription (RFC 8030 §5.2 to §5.4).
struct WebPushHeaders: Hashable, Sendable {
    /// The longest `ttl`, in seconds: four weeks, the longest time for which FCM stores a message.
    static let maximumTTL: Int64 = 2_419_200

    let ttl: Int64
    let urgency: WebPushOverride.Urgency
    let topic: String?

    init(_ content: Content, app: AppID, lane: Lane, expiresAt: Timestamp?, now: Timestamp) {
        ttl = expiresAt.map { TTLCountdown.seconds(until: $0, maximum: Self.maximumTTL, now: now) } ?? Self.maximumTTL
        urgency = content.web?.urgency ?? Self.urgency(of: content, lane)
        topic = content.collapseKey.map { Self.topic(of: $0, app: app) }
    }

    var fields: [ProviderHeader] {
        let fields = [
            ProviderHeader("content-encoding", "aes128gcm"), ProviderHeader("content-type", "application/octet-stream"),
            ProviderHeader("ttl", String(ttl)), ProviderHeader("urgency", urgency.rawValue),
        ]
        return topic.map { fields + [ProviderHeader("topic", $0)] } ?? fields
    }

    /// The interruption level decides; `active`, the default, follows the lane.
    static func urgency(of content: Content, _ lane: Lane) -> WebPushOverride.Urgency {
        switch (content.interruptionLevel ?? .active, lane) {
        case (.passive, _): .low
        case (.active, .bulk): .normal
        case (.active, .interactive), (.timeSensitive, _), (.critical, _): .high
        }
    }

    /// A stored message with the same topic is replaced. 32 characters of base64url, the longest that is allowed.
    ///
    /// A digest, because collapse keys are longer, have other characters, and may contain what the push service must
    /// not read.
    static func topic(of collapseKey: String, app: AppID) -> String {
        let digest = SHA256.hash(data: Array("\(app.rawValue)\0\(collapseKey)".utf8))
        return Base64URL.text(of: digest.prefix(24))
    }
}
