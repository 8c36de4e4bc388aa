import PushProtocol

/// A push to a broadcast channel: one request for all devices subscribed to it (Apple: Sending broadcast push
/// notification requests to APNs). It updates or ends Live Activities, and cannot start one.
struct APNsBroadcast: Sendable {
    /// The maximum body size, in bytes.
    static let maximumPayload = 5120

    private let path: String
    private let template: ProviderRequestBatch.HeaderTemplate
    private let body: [UInt8]

    init(_ push: Push, bundle: String) throws(LocalRejection) {
        var content = push.content
        var given = content.apns ?? APNsOverride()
        // The only type of a broadcast. Any other type in the content is rejected below.
        given.headers = (given.headers ?? [:]).merging(["apns-push-type": "liveactivity"]) { own, _ in own }
        content.apns = given
        let common = try APNsHeaders(for: content, bundle: bundle, expiresAt: push.expiresAt)
        guard common.pushType == .liveActivity else { throw LocalRejection("broadcast-not-liveactivity") }

        let payload = try APNsPayload.render(content, badge: nil)
        try common.pushType.check(payload)
        guard payload["aps"]?["event"]?.string != LiveActivityEvent.start.rawValue else {
            throw LocalRejection("broadcast-cannot-start-a-live-activity")
        }
        body = JSONText.bytes(of: payload)
        guard body.count <= Self.maximumPayload else { throw LocalRejection("payload-too-large") }

        path = "/4/broadcasts/apps/\(bundle)"
        template = ProviderRequestBatch.HeaderTemplate(
            shared: [
                ProviderHeader("apns-push-type", common.pushType.rawValue),
                ProviderHeader("apns-priority", (common.priority ?? .now).rawValue),
                // APNs requires the header. A channel without message storage accepts only 0.
                ProviderHeader("apns-expiration", String(common.expiration ?? 0), neverIndexed: true),
            ], perRequestFields: ["apns-channel-id"])
    }

    /// Adds the request for one channel, with its own header template.
    func add(_ channel: String, to batch: inout ProviderRequestBatch) throws(LocalRejection) {
        guard ChannelID(rawValue: channel) != nil else { throw LocalRejection("malformed-channel-id") }
        batch.begin(template)
        batch.write(path)
        batch.endValue()
        batch.write(channel)
        batch.endValue()
        batch.endRequest(body: body)
    }
}

/// The reasons that occur for broadcasts only. Broadcasts also share the other APNs reasons (ProviderFacts.md §A.11).
enum APNsBroadcastReason: String, CaseIterable, Sendable {
    case featureNotEnabled = "FeatureNotEnabled"
    case topicMismatch = "TopicMismatch"
    case channelNotRegistered = "ChannelNotRegistered"
    case missingChannelID = "MissingChannelId"
    case badChannelID = "BadChannelId"
    case badRequestParameters = "BadRequestParams"
    case badRequestPayload = "BadRequestPayload"
    case missingPushType = "MissingPushType"
    case cannotCreateChannelConfiguration = "CannotCreateChannelConfig"
    /// Contains a space, unlike the reason for device pushes.
    case serviceUnavailable = "Service Unavailable"

    func consequence(retryAfter: Duration?) -> Consequence {
        switch self {
        // Affects the channel only; the app's devices are unaffected.
        case .featureNotEnabled, .topicMismatch: .settle(.misconfigured(reason: rawValue))
        case .channelNotRegistered, .missingChannelID, .badChannelID, .badRequestParameters, .badRequestPayload,
            .missingPushType, .cannotCreateChannelConfiguration:
            .settle(.rejected(reason: rawValue, suspectToken: false))
        case .serviceUnavailable:
            .backOff(
                floor: APNsCodec.delay(APNsCodec.floorAfterServerError, retryAfter), reason: "ServiceUnavailable")
        }
    }
}
