import PushProtocol
import PushSending

/// Whom a message is for: the one member among `token`, `fid`, `topic` and `condition` (`push-protocols` B.2, B.3).
struct FCMAddress: Hashable, Sendable {
    let member: String
    let text: String

    /// The longest topic name, in characters.
    static let maximumTopicLength = 900

    /// Checks what FCM would refuse. A token or FID that is no token at all is told as such.
    init(_ target: Push.Target) throws(LocalRejection) {
        let text = target.token.secret
        switch target.address {
        case nil: self.init(member: "token", text: try Self.device(text))
        case .fid: self.init(member: "fid", text: try Self.device(text))
        case .topic:
            let name = text.hasPrefix(Self.topicPrefix) ? String(text.dropFirst(Self.topicPrefix.count)) : text
            guard Self.isTopic(name) else { throw LocalRejection("malformed-topic") }
            self.init(member: "topic", text: name)
        case .condition:
            guard FCMCondition.isValid(text) else { throw LocalRejection("malformed-condition") }
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

    static func isTopic(_ name: some StringProtocol) -> Bool {
        name.utf8.count <= maximumTopicLength && isName(name)
    }

    /// The alphabet of topics and analytics labels: one or more of `a-z A-Z 0-9 - _ . ~ %`.
    static func isName(_ text: some StringProtocol) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."),
                    UInt8(ascii: "~"), UInt8(ascii: "%"):
                    true
                default: false
                }
            }
    }
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
