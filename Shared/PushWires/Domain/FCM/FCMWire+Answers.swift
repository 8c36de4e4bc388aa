import PushProtocol
package import PushSending

extension FCMWire {
    /// Google's published floor for any retry, and for a 429 that does not say how long.
    static let floor = Duration.seconds(10)
    static let floorAfterQuota = Duration.seconds(60)

    package func consequence(of response: ProviderResponse, to sent: Sent) -> Consequence {
        let consequence = consequence(of: response, at: sent.now)
        return sent.target.address.isOneDevice ? consequence : consequence.withoutEvidence
    }

    private func consequence(of response: ProviderResponse, at now: Timestamp) -> Consequence {
        if response.status == 200 {
            let name = WireCoding.text(of: "name", in: response.body)
            return .settle(.accepted(id: name.map { ProviderName(ProviderWord.printable(Self.lastPart(of: $0))) }))
        }
        let told = RetryAfter.delay(response.headers["retry-after"], now: now).map { max($0, Self.floor) }
        let error = FCMError(response.json)
        if let error, let code = error.code.flatMap(FCMErrorCode.init), Self.isTold(code, by: response.status) {
            return consequence(of: code, error, response.status, told: told)
        }
        return consequence(ofStatus: response.status, error, told: told)
    }

    /// Whether an answer of this status is about what `code` says. A 401 is about our access token, whatever its details
    /// say, unless it is about the key that Firebase holds for another platform.
    private static func isTold(_ code: FCMErrorCode, by status: Int) -> Bool {
        switch code {
        case .thirdPartyAuthError, .apnsAuthError: true
        case .unspecifiedError, .invalidArgument, .senderIDMismatch, .unregistered, .quotaExceeded, .internal,
            .unavailable:
            status != 401
        }
    }

    /// What follows the last slash of `projects/<project>/messages/<id>`.
    private static func lastPart(of name: String) -> String {
        var name = name
        // A string's own view looks at each byte through an index of its own, ten times the work.
        let last = name.withUTF8 { bytes in
            bytes.lastIndex(of: UInt8(ascii: "/")).map { String(decoding: bytes[($0 + 1)...], as: UTF8.self) }
        }
        return last ?? name
    }

    /// B.7, row by row.
    private func consequence(
        of code: FCMErrorCode, _ error: FCMError, _ status: Int, told: Duration?
    ) -> Consequence {
        let word = code.rawValue
        switch code {
        case .unregistered: return .settle(.unregistered(since: nil, reason: word))
        case .invalidArgument: return invalidArgument(error)
        // Apple refuses the key that Firebase holds: iPhones of this app wait, Android goes on.
        case .thirdPartyAuthError, .apnsAuthError:
            return .waitForThirdParty(reason: error.apnsReason.map(ProviderWord.printable) ?? word)
        case .senderIDMismatch: return .settle(.rejected(reason: word, suspectToken: true))
        case .quotaExceeded: return .throttle(floor: told ?? Self.floorAfterQuota, reason: word)
        case .internal, .unavailable: return .backOff(floor: told ?? Self.floor, reason: word)
        case .unspecifiedError:
            return status >= 500
                ? .backOff(floor: told ?? Self.floor, reason: word)
                : .settle(.rejected(reason: word, suspectToken: false))
        }
    }

    /// No code, or one newer than this build: the status decides.
    private func consequence(ofStatus status: Int, _ error: FCMError?, told: Duration?) -> Consequence {
        if status == 400, let error, error.code == nil { return invalidArgument(error) }
        let word = (error?.code ?? error?.status).map(ProviderWord.printable) ?? "HTTP \(status)"
        switch status {
        case 401: return .reauthenticate(reason: word)
        case 403 where error?.code == nil, 404 where error?.code == nil: return .halt(reason: word)
        case 429: return .throttle(floor: told ?? Self.floorAfterQuota, reason: word)
        case 400..<500 where error != nil: return .settle(.rejected(reason: word, suspectToken: false))
        default: return .backOff(floor: told ?? Self.floor, reason: word)
        }
    }

    /// One code for three faults: Apple's refusal, a dead or malformed token, a bad payload.
    private func invalidArgument(_ error: FCMError) -> Consequence {
        let word = FCMErrorCode.invalidArgument.rawValue
        if let spelled = error.apnsReason {
            guard let reason = APNsReason(rawValue: spelled) else {
                let word = ProviderWord.printable(spelled)
                return error.apnsStatus == 410
                    ? .settle(.unregistered(since: nil, reason: word))
                    : .settle(.rejected(reason: word, suspectToken: false))
            }
            return consequence(ofApple: reason)
        }
        if error.isAboutToken { return .settle(.unregistered(since: nil, reason: word)) }
        let isUnclear = error.violations.isEmpty && error.code != nil
        return .settle(.rejected(reason: word, suspectToken: isUnclear))
    }

    /// Apple's answer at second hand: never a reason to halt Android, never held against a token for its payload.
    private func consequence(ofApple reason: APNsReason) -> Consequence {
        let word = reason.rawValue
        switch reason {
        case .unregistered, .expiredToken: return .settle(.unregistered(since: nil, reason: word))
        case .badDeviceToken, .deviceTokenNotForTopic: return .settle(.rejected(reason: word, suspectToken: true))
        case .badCollapseID, .badExpirationDate, .badMessageID, .badPriority, .invalidPushType, .missingDeviceToken,
            .payloadEmpty, .payloadTooLarge:
            return .settle(.rejected(reason: word, suspectToken: false))
        case .badTopic, .missingTopic, .topicDisallowed, .duplicateHeaders, .badCertificate, .badCertificateEnvironment,
            .forbidden, .invalidProviderToken, .missingProviderToken, .badEnvironmentKeyIDInToken,
            .badEnvironmentKeyInToken, .badPath, .methodNotAllowed, .expiredProviderToken, .unrelatedKeyIDInToken:
            return .settle(.misconfigured(reason: word))
        case .tooManyRequests: return .throttle(floor: Self.floorAfterQuota, reason: word)
        case .idleTimeout, .tooManyProviderTokenUpdates, .internalServerError, .serviceUnavailable, .shutdown:
            return .backOff(floor: Self.floor, reason: word)
        }
    }
}

extension Consequence {
    /// The same about a target that is no registration: nothing to hold against a token.
    fileprivate var withoutEvidence: Consequence {
        switch self {
        case .settle(.unregistered(_, let reason)), .settle(.rejected(let reason, _)):
            .settle(.rejected(reason: reason, suspectToken: false))
        case .settle, .backOff, .throttle, .reauthenticate, .reconnect, .leave, .halt, .waitForThirdParty: self
        }
    }
}
