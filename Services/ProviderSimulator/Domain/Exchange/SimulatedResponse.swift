/// The simulator's response to one request: its actions on the wire and its log entry.
struct SimulatedResponse: Sendable {
    var actions: [WireAction]
    /// The device token or FCM target, as far as the request named one.
    var target: String?
    /// The APNs topic or the FCM project.
    var app: String?
    /// The provider's reason for a rejection.
    var reason: String?
    /// An explanation for the log. Real providers send none.
    var detail: String?
    /// The name of the scripted outcome; `nil` when none was played.
    var fault: String?
    /// The provider's id of the message: the `apns-id`, or the FCM message name.
    var messageID: String?
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
