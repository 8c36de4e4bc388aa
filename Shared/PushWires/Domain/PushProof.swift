package import PushProtocol
package import PushSending

/// What a provider would get of a notification to one device, or to whoever follows a channel or a topic, made to be looked
/// at: a printer's proof. The sender's own wire writes it, so it is what would be sent, but for the device's token.
package struct PushProof: Hashable, Sendable {
    package var provider: Provider
    /// Whether it is written, or why it would never reach the wire.
    package var copy: Result<Copy, LocalRejection>
    /// The bytes of what the provider limits: of the body (APNs), or of `notification` and `data` (FCM). `nil` where it
    /// cannot even be rendered.
    package var size: Int?
    /// The most that the provider takes of them.
    package var limit: Int

    package struct Copy: Hashable, Sendable {
        /// Of the request; the project in it is left out.
        package var path: String
        /// `name: value`, as they would be sent; without the credential.
        package var headers: [String]
        package var body: [UInt8]
    }

    /// The reason of a refusal, as it would be told in an outcome; `nil` for what may be sent.
    package var refusal: String? {
        switch copy {
        case .success: nil
        case .failure(let rejection): rejection.reason
        }
    }

    /// What stands for the token that a device would have.
    package static func token(for provider: Provider) -> DeviceToken {
        switch provider {
        case .apns: DeviceToken(secret: String(repeating: "0", count: 64))
        case .fcm: DeviceToken(secret: "REGISTRATION-TOKEN")
        }
    }

    /// What stands for a bundle id that is not known.
    package static let unknownBundle = "BUNDLE-ID"

    /// The proof of `push`, which has one target.
    ///
    /// - Parameter bundle: the app's bundle id, which matters to APNs alone; `nil` when it is not known, and so any topic
    ///   that the content names is taken for the app's.
    package init(_ push: Push, bundle: String? = nil, now: Timestamp) {
        provider = push.provider
        switch push.provider {
        case .apns:
            let bundle = bundle ?? Self.bundle(in: push.content)
            copy = Self.copy(of: push, by: APNsWire(topic: bundle), now: now)
            (size, limit) = Self.apnsSize(push, bundle: bundle)
        case .fcm:
            // The project stands in the path alone.
            copy = Self.copy(of: push, by: FCMWire(project: ""), now: now)
            (size, limit) = Self.fcmSize(push, now: now)
        }
    }

    private static func copy(of push: Push, by wire: some PushWire, now: Timestamp) -> Result<Copy, LocalRejection> {
        Result { () throws(LocalRejection) in
            guard let target = push.targets.first else { throw LocalRejection("no-target") }
            let request = try wire.request(to: target, from: wire.render(push, now: now))
            return Copy(
                path: request.path, headers: request.headers.map { "\($0.name): \($0.value)" }, body: request.body)
        }
    }

    private static func bundle(in content: Content) -> String {
        func given(_ name: String) -> String? {
            content.apns?.headers?.first { $0.key.lowercased() == name }?.value
        }
        guard let topic = given("apns-topic") else { return unknownBundle }
        let suffix = given("apns-push-type").flatMap(APNsPushType.init(rawValue:))?.topicSuffix ?? ""
        return topic.hasSuffix(suffix) ? String(topic.dropLast(suffix.count)) : topic
    }

    private static func apnsSize(_ push: Push, bundle: String) -> (Int?, Int) {
        let isBroadcast = push.targets.first?.address == .channel
        let headers = try? APNsHeaders(for: push.content, bundle: bundle, expiresAt: push.expiresAt)
        let payload = try? APNsPayload.render(push.content, badge: push.targets.first?.badge)
        return (
            payload.map { JSONText.bytes(of: $0).count },
            isBroadcast ? APNsBroadcast.maximumPayload : (headers?.pushType ?? .alert).maximumPayload
        )
    }

    private static func fcmSize(_ push: Push, now: Timestamp) -> (Int?, Int) {
        let message = FCMMessage(
            content: push.content, badge: push.targets.first?.badge, expiresAt: push.expiresAt, now: now)
        return ((try? message.rendered).map(FCMLimits.size), FCMLimits.maximumPayload)
    }
}
