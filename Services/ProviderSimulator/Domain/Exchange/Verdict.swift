import PushProtocol

/// What a provider decided about one request: what it does on the wire, and what the log says of it.
struct Verdict: Sendable {
    var acts: [Act]
    /// Who the request was for, as far as it said: a device token or FCM target.
    var target: String?
    /// The APNs topic or the FCM project.
    var app: String?
    /// The provider's own word for a refusal.
    var reason: String?
    /// Why, for the person who reads the log; real providers keep this to themselves.
    var detail: String?
    /// The provider's name for the message: the `apns-id`, or FCM's message name.
    var messageID: String?
    /// Whether a phone would show it.
    var isDelivered = false

    /// The status of the answer; `nil` when there is none.
    var status: Int? {
        for case .respond(let reply, _) in acts { return reply.status }
        return nil
    }
}
