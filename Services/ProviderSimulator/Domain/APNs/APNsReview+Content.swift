import PushProtocol

/// The checks of what the push is about: topic, body and device token (push-protocols A.5–A.7, C.1).
extension APNsReview {
    mutating func checkTopic() throws(APNsRefusal) {
        guard let name = push.topic, !name.isEmpty else {
            throw APNsRefusal(.missingTopic, "apns-topic is absent and a provider token does not imply one")
        }
        guard APNsTopic.isWellFormed(name) else { throw APNsRefusal(.badTopic, "apns-topic is not a topic") }
        let allowed = push.request.hasClientCertificate ? apps.topics : key?.topics ?? []
        let topic = APNsTopic(name, among: allowed)
        // A device manager's topic is the subject of its certificate, which no list of apps holds.
        let isForDeviceManagement = type == .mdm && name.hasPrefix("com.apple.mgmt.")
        guard allowed.contains(topic.bundle) || isForDeviceManagement else {
            throw APNsRefusal(.topicDisallowed, "the key may not push to “\(topic.bundle)”")
        }
        self.topic = topic
    }

    func checkTypeAgainstTopic() throws(APNsRefusal) {
        if type == .location, push.request.hasClientCertificate {
            throw APNsRefusal(.forbidden, "a location push takes a provider token, never a certificate")
        }
        guard let type, let topic, topic.suffix != type.topicSuffix else { return }
        // What users saw on the wire (A.5): these two types to the plain topic, and any other mismatch.
        let lacksSuffix = topic.suffix.isEmpty && (type == .voip || type == .complication)
        throw APNsRefusal(
            lacksSuffix ? .topicDisallowed : .invalidPushType,
            "a push of type \(type.rawValue) goes to the topic <bundle>\(type.topicSuffix)")
    }

    func checkBackgroundPriority() throws(APNsRefusal) {
        guard type == .background, push.priority != "5" else { return }
        throw APNsRefusal(.badPriority, "a background push has apns-priority 5, said explicitly")
    }

    func checkSize() throws(APNsRefusal) {
        let size = push.request.body.count
        guard size > 0 else { throw APNsRefusal(.payloadEmpty, "the body is empty") }
        let limit = type?.maximumBodySize ?? (topic?.suffix == ".voip" ? 5120 : 4096)
        guard size <= limit else {
            throw APNsRefusal(.payloadTooLarge, "the body has \(size) bytes; at most \(limit) are allowed")
        }
    }

    mutating func checkBody() throws(APNsRefusal) {
        let value: JSONValue
        do throws(JSONReader.Failure) {
            value = try JSONReader.value(of: push.request.body)
        } catch {
            throw APNsRefusal(.payloadEmpty, "the body is not JSON at byte \(error.offset): \(error.problem)")
        }
        guard let members = value.object else { throw APNsRefusal(.payloadEmpty, "the body is not a JSON object") }
        payload = members
    }

    func checkPayload() throws(APNsRefusal) {
        if let type, let problem = APNsPayload.problem(of: payload, for: type) {
            throw APNsRefusal(.invalidPushType, "a push of type \(type.rawValue): \(problem)")
        }
    }

    mutating func checkToken() throws(APNsRefusal) {
        guard let token = push.token.flatMap({ DeviceToken(String($0), for: .apns) }) else {
            throw APNsRefusal(.badDeviceToken, "the token is not an even number of hexadecimal digits")
        }
        guard token.secret != Self.neverGivenOut else {
            throw APNsRefusal(.badDeviceToken, "the token is nobody's: APNs gives out none of zeros alone")
        }
        self.token = token.secret
    }

    private static let neverGivenOut = String(repeating: "0", count: 64)

    func checkRegistration() throws(APNsRefusal) {
        guard let token, let registration = registrations.apns(token) else { return }
        if let expected = registration.environment, expected != environment {
            throw APNsRefusal(.badDeviceToken, "the token is registered for \(expected.rawValue)")
        }
        if let expected = registration.topic, let actual = push.topic, expected != actual {
            throw APNsRefusal(.deviceTokenNotForTopic, "the token is registered for the topic “\(expected)”")
        }
    }
}
