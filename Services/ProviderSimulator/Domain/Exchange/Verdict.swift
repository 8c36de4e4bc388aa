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
    /// What was scripted for it, by name; `nil` when the provider was itself.
    var fault: String?
    /// The provider's name for the message: the `apns-id`, or FCM's message name.
    var messageID: String?
    /// Who else has it: the subscribers of the topic it was for.
    var subscribers: [String] = []
    /// Whether the provider took it, so that a phone has it; also when the sender was never told.
    var isDelivered = false

    /// The status of the answer, even of one that was cut short; `nil` when there is none.
    var status: Int? {
        for act in acts {
            switch act {
            case .respond(let reply, _), .begin(let reply): return reply.status
            case .wait, .reset, .goAway, .limitStreams, .ping, .stall, .closeConnection, .dropConnection, .silence:
                continue
            }
        }
        return nil
    }
}
