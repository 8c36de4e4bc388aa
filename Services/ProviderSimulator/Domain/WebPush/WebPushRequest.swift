import PushProtocol

/// A push message for a subscription that passed the push service's checks (RFC 8030 §5).
struct WebPushRequest: Sendable {
    /// The size of a body that each push service accepts (RFC 8030 §7.2).
    static let maximumBody = 4096
    /// In seconds: four weeks, the longest time that FCM stores a message.
    static let maximumTTL: Int64 = 2_419_200
    private static let urgencies: Set<String> = ["very-low", "low", "normal", "high"]

    let subscription: BrowserSubscription
    /// How long the push service would store it, in seconds.
    let ttl: Int64
    let message: MessageDecryption

    /// Validates in this order: subscription, authorization, size, headers, encryption.
    init(_ request: ProviderRequest, id: String, in state: SimulatorState) throws(WebPushRejection) {
        let now = request.receivedAt
        guard request.method == "POST" else {
            throw WebPushRejection(.methodNotAllowed, "a message is sent with POST")
        }
        subscription = try state.subscriptions.find(id, at: now)
        try VAPIDAuthorization(request["authorization"]).verify(for: subscription, at: now)
        guard request.body.count <= Self.maximumBody else {
            throw WebPushRejection(
                .payloadTooLarge, "the body has \(request.body.count) bytes of at most \(Self.maximumBody)")
        }
        ttl = try Self.ttl(request["ttl"])
        if let urgency = request["urgency"], !Self.urgencies.contains(urgency) {
            throw WebPushRejection(.badUrgency, "urgency is none of very-low, low, normal, high")
        }
        if let topic = request["topic"], !Self.isTopic(topic) {
            throw WebPushRejection(.badTopic, "topic is not 1 to 32 characters of base64url")
        }
        guard request["content-encoding"] == "aes128gcm" else {
            throw WebPushRejection(.badContentEncoding, "content-encoding is not aes128gcm")
        }
        do throws(MessageDecryption.Failure) {
            message = try MessageDecryption(request.body)
        } catch {
            throw WebPushRejection(.badEncryptionHeader, "the body is not aes128gcm: \(error.problem)")
        }
    }

    private static func ttl(_ text: String?) throws(WebPushRejection) -> Int64 {
        guard let text, !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            throw WebPushRejection(.badTTL, "ttl is missing, or not a number of seconds")
        }
        return min(Int64(text) ?? maximumTTL, maximumTTL)
    }

    private static func isTopic(_ text: String) -> Bool {
        (1...32).contains(text.utf8.count) && Base64URL.isAlphabet(text)
    }
}
