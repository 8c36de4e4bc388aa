import FoundationEssentials
import PushProtocol
package import PushSending

extension APNsWire {
    /// Apple's "after 15 minutes, you can retry", read literally.
    static let floorAfterServerError = Duration.seconds(15 * 60)
    /// The wait for what Apple sets no floor for.
    static let floor = Duration.seconds(10)
    /// The wait after a 429 that does not say how long.
    static let floorAfterTooMany = Duration.seconds(60)
    /// Younger provider tokens cannot have expired: the clock is wrong, and minting more would be refused for its rate.
    static let youngestExpiredToken = Duration.seconds(20 * 60)

    package func consequence(of response: ProviderResponse, to sent: Sent) -> Consequence {
        let isBroadcast = sent.target.address == .channel
        if response.status == 200 { return .settle(.accepted(id: name(in: response, isBroadcast, sent))) }
        let said = response.json?["reason"]?.string
        let told = RetryAfter.delay(response.headers["retry-after"], now: sent.now)
        if isBroadcast, let reason = said.flatMap(BroadcastReason.init) { return reason.consequence(told: told) }
        if let reason = said.flatMap(APNsReason.init) {
            // An answer of another status than the reason's own is still read by its reason, except that 410 is final.
            if response.status == 410, reason != .unregistered, reason != .expiredToken {
                return gone(response, reason.rawValue)
            }
            return consequence(of: reason, response, sent, told: told)
        }
        return unknown(status: response.status, reason: said, response, told: told)
    }

    /// The provider's name for what it took, or ours where it says none. A broadcast has one for the delivery log alone.
    private func name(in response: ProviderResponse, _ isBroadcast: Bool, _ sent: Sent) -> ProviderName {
        if !isBroadcast, let id = response.headers.id(named: "apns-id") { return ProviderName(id) }
        let said =
            isBroadcast
            ? response.headers["apns-unique-id"] ?? response.headers["apns-request-id"] : response.headers["apns-id"]
        return said.map { ProviderName(ProviderWord.printable($0).lowercasedASCII) } ?? ProviderName(sent.target.pushID)
    }

    /// A.9, row by row.
    private func consequence(
        of reason: APNsReason, _ response: ProviderResponse, _ sent: Sent, told: Duration?
    ) -> Consequence {
        let word = reason.rawValue
        switch reason {
        case .badCollapseID, .badExpirationDate, .badMessageID, .badPriority, .invalidPushType, .missingDeviceToken,
            .payloadEmpty, .payloadTooLarge:
            return .settle(.rejected(reason: word, suspectToken: false))
        case .badDeviceToken, .deviceTokenNotForTopic:
            return .settle(.rejected(reason: word, suspectToken: true))
        case .unregistered, .expiredToken:
            return gone(response, word)
        case .badTopic, .missingTopic, .topicDisallowed, .duplicateHeaders, .forbidden, .badPath, .methodNotAllowed:
            // A broadcast goes another way, under another right: its refusal says nothing about the lane's devices.
            return sent.target.address == .channel ? .settle(.misconfigured(reason: word)) : .halt(reason: word)
        case .badCertificate, .badCertificateEnvironment, .invalidProviderToken, .missingProviderToken,
            .badEnvironmentKeyIDInToken, .badEnvironmentKeyInToken:
            return .halt(reason: word)
        case .expiredProviderToken:
            return sent.credentialAge < Self.youngestExpiredToken
                ? .halt(reason: "\(word): the provider token is young, so the clock is wrong")
                : .reauthenticate(reason: word)
        case .unrelatedKeyIDInToken:
            return .reconnect(reason: word, otherwise: .halts)
        case .idleTimeout:
            return .reconnect(reason: word, otherwise: .backsOff(floor: Self.floor))
        case .tooManyProviderTokenUpdates:
            // It is counted for each connection, which keeps to the token that it saw first: one of before a key changed, where a
            // request had waited for a connection meanwhile. Other connections take ours, and where they do not, since
            // another process mints tokens of this key, the shut lane bounds how often new ones are opened.
            return .leave(floor: Self.wait(Self.floor, told), reason: word)
        case .tooManyRequests:
            return .throttle(floor: Self.wait(Self.floorAfterTooMany, told), reason: word)
        case .internalServerError, .serviceUnavailable:
            return .backOff(floor: Self.wait(Self.floorAfterServerError, told), reason: word)
        case .shutdown:
            return .leave(floor: Self.wait(Self.floorAfterServerError, told), reason: word)
        }
    }

    /// The longer of what Apple's pages say and what the answer says. Apple documents no `retry-after`: a short one lifts no
    /// documented wait.
    static func wait(_ floor: Duration, _ told: Duration?) -> Duration { max(floor, told ?? .zero) }

    /// Final for this token; since when is what feedback compares with the registration. A time from before there was APNs
    /// is none, such as one in seconds: by it every registration would be newer, and nothing would follow from the answer.
    private func gone(_ response: ProviderResponse, _ reason: String) -> Consequence {
        let told = response.json?["timestamp"]?.int.map(Timestamp.init(milliseconds:))
        if let told, told < Self.beginning {
            return .settle(.unregistered(since: nil, reason: "\(reason)-at-no-time"))
        }
        return .settle(.unregistered(since: told, reason: reason))
    }

    /// 17 June 2009, when iOS 3.0 brought push notifications.
    private static let beginning = Timestamp(milliseconds: 1_245_196_800_000)

    /// What Apple did not document: the status decides, and the token stays untouched except by 410.
    private func unknown(
        status: Int, reason: String?, _ response: ProviderResponse, told: Duration?
    ) -> Consequence {
        let word = reason.map(ProviderWord.printable) ?? "HTTP \(status)"
        switch status {
        case 410: return gone(response, word)
        case 429: return .throttle(floor: Self.wait(Self.floorAfterTooMany, told), reason: word)
        case 400..<500 where reason != nil: return .settle(.rejected(reason: word, suspectToken: false))
        // Apple's own two, though the reason may have got lost, and whatever else has one.
        case 500... where reason != nil || [500, 503].contains(status):
            return .backOff(floor: Self.wait(Self.floorAfterServerError, told), reason: word)
        // Not Apple's JSON: a front end or a cut connection spoke.
        default: return .backOff(floor: Self.wait(Self.floor, told), reason: word)
        }
    }
}
