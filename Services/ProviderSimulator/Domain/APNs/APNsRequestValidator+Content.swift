import PushProtocol

/// The checks of topic, body and device token (ProviderFacts.md §A.5–A.7, §C.1).
extension APNsRequestValidator {
    mutating func checkTopic() throws(APNsRejection) {
        guard let name = push.topic, !name.isEmpty else {
            throw APNsRejection(.missingTopic, "apns-topic is absent and a provider token does not imply one")
        }
        guard APNsTopic.isWellFormed(name) else { throw APNsRejection(.badTopic, "apns-topic is not a topic") }
        let allowed = push.request.hasClientCertificate ? apps.topics : key?.topics ?? []
        let topic = APNsTopic(name, among: allowed)
        // The MDM topic is the subject of the MDM certificate, which no app configuration contains.
        let isForDeviceManagement = type == .mdm && name.hasPrefix("com.apple.mgmt.")
        guard allowed.contains(topic.bundle) || isForDeviceManagement else {
            throw APNsRejection(.topicDisallowed, "the key may not push to “\(topic.bundle)”")
        }
        self.topic = topic
    }

    func checkTypeAgainstTopic() throws(APNsRejection) {
        if type == .location, push.request.hasClientCertificate {
            throw APNsRejection(.forbidden, "a location push takes a provider token, never a certificate")
        }
        guard let type, let topic, topic.suffix != type.topicSuffix else { return }
        // As observed: `TopicDisallowed` for these two types without their suffix, `InvalidPushType` for any other
        // mismatch.
        let lacksSuffix = topic.suffix.isEmpty && (type == .voip || type == .complication)
        throw APNsRejection(
            lacksSuffix ? .topicDisallowed : .invalidPushType,
            "a push of type \(type.rawValue) goes to the topic <bundle>\(type.topicSuffix)")
    }

    func checkBackgroundPriority() throws(APNsRejection) {
        guard type == .background, push.priority != "5" else { return }
        throw APNsRejection(.badPriority, "a background push needs an explicit apns-priority of 5")
    }

    func checkSize() throws(APNsRejection) {
        let size = push.request.body.count
        guard size > 0 else { throw APNsRejection(.payloadEmpty, "the body is empty") }
        let limit = type?.maximumBodySize ?? (topic?.suffix == ".voip" ? 5120 : 4096)
        guard size <= limit else {
            throw APNsRejection(.payloadTooLarge, "the body has \(size) bytes; at most \(limit) are allowed")
        }
    }

    mutating func checkBody() throws(APNsRejection) {
        let value: JSONValue
        do throws(ProviderJSON.Failure) {
            value = try ProviderJSON.value(of: push.request.body)
        } catch {
            throw APNsRejection(.payloadEmpty, "the body is not JSON at byte \(error.offset)")
        }
        guard let members = value.object else { throw APNsRejection(.payloadEmpty, "the body is not a JSON object") }
        payload = members
    }

    func checkPayload() throws(APNsRejection) {
        if let type, let problem = APNsPayload.problem(of: payload, for: type) {
            throw APNsRejection(.invalidPushType, "a push of type \(type.rawValue): \(problem)")
        }
    }

    mutating func checkToken() throws(APNsRejection) {
        guard let token = push.token.flatMap({ DeviceToken(String($0), for: .apns) }) else {
            throw APNsRejection(.badDeviceToken, "the token is not an even number of hexadecimal digits")
        }
        guard token.secret != Self.allZeroToken else {
            throw APNsRejection(.badDeviceToken, "APNs never issues an all-zero token")
        }
        self.token = token.secret
    }

    private static let allZeroToken = String(repeating: "0", count: 64)

    func checkRegistration() throws(APNsRejection) {
        guard let token, let registration = pinnedTokens.apns(token) else { return }
        if let expected = registration.environment, expected != environment {
            throw APNsRejection(.badDeviceToken, "the token is registered for \(expected.rawValue)")
        }
        if let expected = registration.topic, let actual = push.topic, expected != actual {
            throw APNsRejection(.deviceTokenNotForTopic, "the token is registered for the topic “\(expected)”")
        }
    }
}
