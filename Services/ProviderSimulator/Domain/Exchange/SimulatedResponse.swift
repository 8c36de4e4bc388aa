/// The simulator's response to one request: its actions on the wire and its log entry.
struct SimulatedResponse: Sendable {
    var actions: [WireAction]
    /// The device token, FCM target or subscription, as far as the request named one.
    var target: String?
    /// The APNs topic, the FCM project, or the app in the catalog that a subscription belongs to.
    var app: String?
    /// The provider's reason for a rejection.
    var reason: String?
    /// An explanation for the log. Real providers send none.
    var detail: String?
    /// The name of the scripted outcome; `nil` when none was played.
    var fault: String?
    /// The provider's id of the message: the `apns-id`, the FCM message name, or the last part of `location`.
    var messageID: String?
    /// The message that the browser decrypted.
    var plaintext: [UInt8]?
    /// The subscribers of the topic or condition it addressed.
    var subscribers: [String] = []
    /// Whether the provider accepted it, even if the sender received no response.
    var isDelivered = false

    /// The response status, also of a truncated response; `nil` without a response.
    var status: Int? {
        for action in actions {
            switch action {
            case .respond(let reply, _), .begin(let reply): return reply.status
            case .wait, .reset, .goAway, .limitStreams, .ping, .stall, .closeConnection, .dropConnection, .silence:
                continue
            }
        }
        return nil
    }
}
