import PushProtocol

/// The target member of an FCM message: `token`, `fid`, `topic` or `condition` (ProviderFacts.md §B.2, §B.3).
struct FCMAddress: Hashable, Sendable {
    let member: String
    let text: String

    /// Throws for a target that FCM would reject. A malformed token or FID is reported as suspect.
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

    /// The SDKs' topic prefix, which the API does not accept.
    private static let topicPrefix = "/topics/"
}

extension Push.Address? {
    /// Whether a response can be evidence about one registration.
    var isOneDevice: Bool {
        switch self {
        case nil, .fid: true
        case .topic, .condition, .channel: false
        }
    }
}
