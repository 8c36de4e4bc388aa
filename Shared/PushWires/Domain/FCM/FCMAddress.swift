import PushProtocol
import PushSending

/// Whom a message is for: the one member among `token`, `fid`, `topic` and `condition` (`push-protocols` B.2, B.3).
struct FCMAddress: Hashable, Sendable {
    let member: String
    let text: String

    /// Checks what FCM would refuse. A token or FID that is no token at all is told as such.
    init(_ target: Push.Target) throws(LocalRejection) {
        let text = target.token.secret
        switch target.address {
        case nil: self.init(member: "token", text: try Self.device(text))
        case .fid: self.init(member: "fid", text: try Self.device(text))
        case .topic:
            let name = text.hasPrefix(Self.topicPrefix) ? String(text.dropFirst(Self.topicPrefix.count)) : text
            guard FCMTopic(rawValue: name) != nil else { throw LocalRejection("malformed-topic") }
            self.init(member: "topic", text: name)
        case .condition:
            guard FCMCondition(rawValue: text) != nil else { throw LocalRejection("malformed-condition") }
            self.init(member: "condition", text: text)
        case .channel: throw LocalRejection("address-not-of-fcm")
        }
    }

    private init(member: String, text: String) {
        self.member = member
        self.text = text
    }

    private static func device(_ text: String) throws(LocalRejection) -> String {
        guard let token = DeviceToken(text, for: .fcm) else {
            throw LocalRejection("malformed-token", suspectToken: true)
        }
        return token.secret
    }

    /// The SDKs' way to write topics; it does not go on the wire.
    private static let topicPrefix = "/topics/"
}

extension Push.Address? {
    /// Whether an answer can be evidence about one registration; a topic or a condition is nobody's.
    var isOneDevice: Bool {
        switch self {
        case nil, .fid: true
        case .topic, .condition, .channel: false
        }
    }
}
