package import PushProtocol

/// A provider request rendered for inspection, for one device or a provider-side audience. The sender's codec
/// produces it, so it equals the real request except for the device token. The body of a Web Push is shown before its
/// encryption.
package struct PayloadPreview: Hashable, Sendable {
    package var provider: Provider
    /// The request, or the reason why the sender would not send it.
    package var request: Result<Request, LocalRejection>
    /// The size that the provider limits, in bytes: the body (APNs), `notification` and `data` (FCM), or the message before
    /// its encryption (Web Push). `nil` if the content cannot be rendered.
    package var size: Int?
    /// The provider's size limit, in bytes.
    package var limit: Int

    package struct Request: Hashable, Sendable {
        /// The request path, without the FCM project.
        package var path: String
        /// `name: value` lines, without the credential.
        package var headers: [String]
        package var body: [UInt8]
    }

    /// The rejection reason, as in an outcome; `nil` if the request would be sent.
    package var rejectionReason: String? {
        switch request {
        case .success: nil
        case .failure(let rejection): rejection.reason
        }
    }

    /// The placeholder for a device token.
    package static func token(for provider: Provider) -> DeviceToken {
        switch provider {
        case .apns: DeviceToken(secret: String(repeating: "0", count: 64))
        case .fcm: DeviceToken(secret: "REGISTRATION-TOKEN")
        case .webpush: DeviceToken(secret: "SUBSCRIPTION")
        }
    }

    /// The placeholder for an unknown bundle id.
    package static let unknownBundle = "BUNDLE-ID"

    /// Renders `push`, which has one target.
    ///
    /// - Parameters:
    ///   - bundle: the app's bundle id, used for APNs only. With `nil`, the topic in the content is assumed to be the
    ///     app's.
    ///   - site: the app's home page, used for Web Push only. With `nil`, a placeholder.
    package init(_ push: Push, bundle: String? = nil, site: WebPushSite? = nil, now: Timestamp) {
        provider = push.provider
        switch push.provider {
        case .apns:
            let bundle = bundle ?? Self.bundle(in: push.content)
            request = Self.request(of: push, by: APNsCodec(topic: bundle), now: now)
            (size, limit) = Self.apnsSize(push, bundle: bundle)
        case .fcm:
            // Only the path contains the project.
            request = Self.request(of: push, by: FCMCodec(project: ""), now: now)
            (size, limit) = Self.fcmSize(push, now: now)
        case .webpush:
            request = Self.webPushRequest(push, site: site ?? .placeholder, now: now)
            (size, limit) = (try? request.get().body.count, WebPushEncryption.maximumMessage)
        }
    }

    private static func request(of push: Push, by codec: some ProviderCodec, now: Timestamp) -> Result<
        Request, LocalRejection
    > {
        Result { () throws(LocalRejection) in
            guard let target = push.targets.first else { throw LocalRejection("no-target") }
            let sent = try codec.request(to: target, from: codec.render(push, now: now))
            return Request(
                path: sent.path, headers: sent.headers.map { "\($0.name): \($0.value)" }, body: sent.body)
        }
    }

    private static func webPushRequest(
        _ push: Push, site: WebPushSite, now: Timestamp
    ) -> Result<Request, LocalRejection> {
        Result { () throws(LocalRejection) in
            guard let target = push.targets.first else { throw LocalRejection("no-target") }
            let message = try WebPushMessage(content: push.content, badge: target.badge, site: site).template()
            let headers = WebPushHeaders(
                push.content, app: push.app, lane: push.lane, expiresAt: push.expiresAt, now: now)
            let body = ByteWriter.bytes(expected: message.count(filledWith: WebPushRendering.idLength)) { json in
                message.write(from: 0, filledWith: target.notification, to: &json)
            }
            return Request(path: "/", headers: headers.fields.map { "\($0.name): \($0.value)" }, body: body)
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
        let payload = try? APNsPayload.render(push.apnsContent, badge: push.targets.first?.badge)
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
