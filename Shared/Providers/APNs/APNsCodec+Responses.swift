import FoundationEssentials
import PushProtocol

extension APNsCodec {
    /// Apple: retry a 5xx after 15 minutes (Apple: Handling notification responses from APNs).
    static let floorAfterServerError = Duration.seconds(15 * 60)
    /// The minimum wait where Apple states none.
    static let floor = Duration.seconds(10)
    /// The minimum wait after a 429.
    static let floorAfterTooMany = Duration.seconds(60)
    /// The minimum age of a token that can have expired. A younger one means a wrong clock, and minting another would
    /// exceed the token rate.
    static let youngestExpiredToken = Duration.seconds(20 * 60)

    package func consequence(of response: ProviderResponse, to sent: ResponseContext) -> Consequence {
        let isBroadcast = sent.target.address == .channel
        if response.status == 200 { return .settle(.accepted(id: messageID(in: response, isBroadcast, sent))) }
        let said = response.json?["reason"]?.string
        let retryAfter = RetryAfter.delay(response.headers["retry-after"], now: sent.now)
        if isBroadcast, let reason = said.flatMap(APNsBroadcastReason.init) {
            return reason.consequence(retryAfter: retryAfter)
        }
        if let reason = said.flatMap(APNsReason.init) {
            // The reason takes precedence over the status, except that 410 is final.
            if response.status == 410, reason != .unregistered, reason != .expiredToken {
                return unregistered(response, reason.rawValue)
            }
            return consequence(of: reason, response, sent, retryAfter: retryAfter)
        }
        return unknown(status: response.status, reason: said, response, retryAfter: retryAfter)
    }

    /// The provider's message id, or this project's where the response has none. A broadcast's id serves the delivery
    /// log only.
    private func messageID(
        in response: ProviderResponse, _ isBroadcast: Bool, _ sent: ResponseContext
    ) -> ProviderMessageID {
        if !isBroadcast, let id = response.headers.id(named: "apns-id") { return ProviderMessageID(id) }
        let said =
            isBroadcast
            ? response.headers["apns-unique-id"] ?? response.headers["apns-request-id"] : response.headers["apns-id"]
        return said.map { ProviderMessageID(SanitizedReason.printable($0).lowercasedASCII) }
            ?? ProviderMessageID(sent.target.pushID)
    }

    /// The table of ProviderFacts.md §A.9.
    private func consequence(
        of reason: APNsReason, _ response: ProviderResponse, _ sent: ResponseContext, retryAfter: Duration?
    ) -> Consequence {
        let reasonText = reason.rawValue
        switch reason {
        case .badCollapseID, .badExpirationDate, .badMessageID, .badPriority, .invalidPushType, .missingDeviceToken,
            .payloadEmpty, .payloadTooLarge:
            return .settle(.rejected(reason: reasonText, suspectToken: false))
        case .badDeviceToken, .deviceTokenNotForTopic:
            return .settle(.rejected(reason: reasonText, suspectToken: true))
        case .unregistered, .expiredToken:
            return unregistered(response, reasonText)
        case .badTopic, .missingTopic, .topicDisallowed, .duplicateHeaders, .forbidden, .badPath, .methodNotAllowed:
            // Broadcasts need a permission of their own, so a rejection says nothing about devices.
            return sent.target.address == .channel
                ? .settle(.misconfigured(reason: reasonText)) : .halt(reason: reasonText)
        case .badCertificate, .badCertificateEnvironment, .invalidProviderToken, .missingProviderToken,
            .badEnvironmentKeyIDInToken, .badEnvironmentKeyInToken:
            return .halt(reason: reasonText)
        case .expiredProviderToken:
            return sent.credentialAge < Self.youngestExpiredToken
                ? .halt(reason: "\(reasonText): the provider token is new; check this machine's clock")
                : .reauthenticate(reason: reasonText)
        case .unrelatedKeyIDInToken:
            return .reconnect(reason: reasonText, otherwise: .halts)
        case .idleTimeout:
            return .reconnect(reason: reasonText, otherwise: .backsOff(floor: Self.floor))
        case .tooManyProviderTokenUpdates:
            // APNs counts token changes on each connection. The first token on this connection was signed before the
            // key changed, so another connection accepts the current token. If another process signs with the key
            // too, the circuit breaker limits how often connections are opened.
            return .reconnectAndBackOff(floor: Self.delay(Self.floor, retryAfter), reason: reasonText)
        case .tooManyRequests:
            return .throttle(floor: Self.delay(Self.floorAfterTooMany, retryAfter), reason: reasonText)
        case .internalServerError, .serviceUnavailable:
            return .backOff(floor: Self.delay(Self.floorAfterServerError, retryAfter), reason: reasonText)
        case .shutdown:
            return .reconnectAndBackOff(floor: Self.delay(Self.floorAfterServerError, retryAfter), reason: reasonText)
        }
    }

    /// The longer of Apple's documented wait and `retry-after`. Apple does not document that header, so it cannot
    /// shorten a wait.
    static func delay(_ floor: Duration, _ retryAfter: Duration?) -> Duration { max(floor, retryAfter ?? .zero) }

    /// The token is gone. Feedback compares the time with the registration's. A time before APNs existed, such as one
    /// in seconds, is dropped: every registration would be newer, and the response would have no effect.
    private func unregistered(_ response: ProviderResponse, _ reason: String) -> Consequence {
        let since = response.json?["timestamp"]?.int.map(Timestamp.init(milliseconds:))
        if let since, since < Self.launchOfAPNs {
            return .settle(.unregistered(since: nil, reason: "\(reason)-at-no-time"))
        }
        return .settle(.unregistered(since: since, reason: reason))
    }

    /// 17 June 2009, the release of iOS 3.0, which introduced APNs.
    private static let launchOfAPNs = Timestamp(milliseconds: 1_245_196_800_000)

    /// An undocumented reason: the status decides. Only 410 affects the token.
    private func unknown(
        status: Int, reason: String?, _ response: ProviderResponse, retryAfter: Duration?
    ) -> Consequence {
        let reasonText = reason.map(SanitizedReason.printable) ?? "HTTP \(status)"
        switch status {
        case 410: return unregistered(response, reasonText)
        case 429: return .throttle(floor: Self.delay(Self.floorAfterTooMany, retryAfter), reason: reasonText)
        case 400..<500 where reason != nil: return .settle(.rejected(reason: reasonText, suspectToken: false))
        // Statuses that Apple documents, even without a readable reason, and any other 5xx with a reason.
        case 500... where reason != nil || [500, 503].contains(status):
            return .backOff(floor: Self.delay(Self.floorAfterServerError, retryAfter), reason: reasonText)
        // Not a response of APNs, but of a proxy, or truncated.
        default: return .backOff(floor: Self.delay(Self.floor, retryAfter), reason: reasonText)
        }
    }
}
