import PushProtocol
import PushSending

/// A push to a broadcast channel: one request that reaches every device which follows the channel
/// (`push-protocols` A.11). It updates or ends Live Activities, and cannot start one.
struct APNsBroadcast: Sendable {
    /// The most bytes a body may have.
    static let maximumPayload = 5120

    private let path: String
    private let letter: RequestBatch.Letter
    private let body: [UInt8]

    init(_ push: Push, bundle: String) throws(LocalRejection) {
        var content = push.content
        var given = content.apns ?? APNsOverride()
        // The one type there is; a content that claims another is refused below.
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
        letter = RequestBatch.Letter(
            shared: [
                ProviderHeader("apns-push-type", common.pushType.rawValue),
                ProviderHeader("apns-priority", (common.priority ?? .now).rawValue),
                // Required; only a channel that stores takes another than 0.
                ProviderHeader("apns-expiration", String(common.expiration ?? 0), neverIndexed: true),
            ], own: ["apns-channel-id"])
    }

    /// Adds the request to one channel, as a letter of its own.
    func add(_ channel: String, to batch: inout RequestBatch) throws(LocalRejection) {
        guard ChannelID(rawValue: channel) != nil else { throw LocalRejection("malformed-channel-id") }
        batch.begin(letter)
        batch.write(path)
        batch.endValue()
        batch.write(channel)
        batch.endValue()
        batch.endRequest(body: body)
    }
}

/// The reasons that only broadcasts have (`push-protocols` A.11); they share the others.
enum BroadcastReason: String, CaseIterable, Sendable {
    case featureNotEnabled = "FeatureNotEnabled"
    case topicMismatch = "TopicMismatch"
    case channelNotRegistered = "ChannelNotRegistered"
    case missingChannelID = "MissingChannelId"
    case badChannelID = "BadChannelId"
    case badRequestParameters = "BadRequestParams"
    case badRequestPayload = "BadRequestPayload"
    case missingPushType = "MissingPushType"
    case cannotCreateChannelConfiguration = "CannotCreateChannelConfig"
    /// With a space, other than for device pushes.
    case serviceUnavailable = "Service Unavailable"

    func consequence(told: Duration?) -> Consequence {
        switch self {
        // The app's devices have their own standing with APNs: what is mended here is mended for channels alone.
        case .featureNotEnabled, .topicMismatch: .settle(.misconfigured(reason: rawValue))
        case .channelNotRegistered, .missingChannelID, .badChannelID, .badRequestParameters, .badRequestPayload,
            .missingPushType, .cannotCreateChannelConfiguration:
            .settle(.rejected(reason: rawValue, suspectToken: false))
        case .serviceUnavailable:
            .backOff(
                floor: APNsWire.wait(APNsWire.floorAfterServerError, told), reason: "ServiceUnavailable")
        }
    }
}
