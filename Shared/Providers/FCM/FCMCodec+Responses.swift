import PushProtocol

extension FCMCodec {
    /// The minimum wait before a retry, and after a 429 without `retry-after` (Firebase: FCM error codes).
    static let floor = Duration.seconds(10)
    static let floorAfterQuota = Duration.seconds(60)

    package func consequence(of response: ProviderResponse, to sent: ResponseContext) -> Consequence {
        let consequence = consequence(of: response, at: sent.now)
        return sent.target.address.isOneDevice ? consequence : consequence.withoutEvidence
    }

    private func consequence(of response: ProviderResponse, at now: Timestamp) -> Consequence {
        if response.status == 200 {
            let name = WireCoding.text(of: "name", in: response.body)
            return .settle(
                .accepted(id: name.map { ProviderMessageID(SanitizedReason.printable(Self.lastPart(of: $0))) }))
        }
        let retryAfter = RetryAfter.delay(response.headers["retry-after"], now: now).map { max($0, Self.floor) }
        let error = FCMError(response.json)
        if let error, let code = error.code.flatMap(FCMErrorCode.init), Self.decides(code, by: response.status) {
            return consequence(of: code, error, response.status, retryAfter: retryAfter)
        }
        return consequence(ofStatus: response.status, error, retryAfter: retryAfter)
    }

    /// Whether `code` decides for this status. A 401 concerns our access token, unless the code is about Firebase's
    /// own APNs or Web Push key.
    private static func decides(_ code: FCMErrorCode, by status: Int) -> Bool {
        switch code {
        case .thirdPartyAuthError, .apnsAuthError: true
        case .unspecifiedError, .invalidArgument, .senderIDMismatch, .unregistered, .quotaExceeded, .internal,
            .unavailable:
            status != 401
        }
    }

    /// The message id: the last part of `projects/<project>/messages/<id>`.
    private static func lastPart(of name: String) -> String {
        var name = name
        // Searching bytes is ten times faster than searching the string's UTF-8 view.
        let last = name.withUTF8 { bytes in
            bytes.lastIndex(of: UInt8(ascii: "/")).map { String(decoding: bytes[($0 + 1)...], as: UTF8.self) }
        }
        return last ?? name
    }

    /// The table of ProviderFacts.md §B.7.
    private func consequence(
        of code: FCMErrorCode, _ error: FCMError, _ status: Int, retryAfter: Duration?
    ) -> Consequence {
        let reasonText = code.rawValue
        switch code {
        case .unregistered: return .settle(.unregistered(since: nil, reason: reasonText))
        case .invalidArgument: return invalidArgument(error)
        // Apple rejects Firebase's key. iPhones of this app wait; Android continues.
        case .thirdPartyAuthError, .apnsAuthError:
            return .waitForThirdParty(reason: error.apnsReason.map(SanitizedReason.printable) ?? reasonText)
        case .senderIDMismatch: return .settle(.rejected(reason: reasonText, suspectToken: true))
        case .quotaExceeded: return .throttle(floor: retryAfter ?? Self.floorAfterQuota, reason: reasonText)
        case .internal, .unavailable: return .backOff(floor: retryAfter ?? Self.floor, reason: reasonText)
        case .unspecifiedError:
            return status >= 500
                ? .backOff(floor: retryAfter ?? Self.floor, reason: reasonText)
                : .settle(.rejected(reason: reasonText, suspectToken: false))
        }
    }

    /// Without a known code, the status decides.
    private func consequence(ofStatus status: Int, _ error: FCMError?, retryAfter: Duration?) -> Consequence {
        if status == 400, let error, error.code == nil { return invalidArgument(error) }
        let reasonText = (error?.code ?? error?.status).map(SanitizedReason.printable) ?? "HTTP \(status)"
        switch status {
        case 401: return .reauthenticate(reason: reasonText)
        case 403 where error?.code == nil, 404 where error?.code == nil: return .halt(reason: reasonText)
        case 429: return .throttle(floor: retryAfter ?? Self.floorAfterQuota, reason: reasonText)
        case 400..<500 where error != nil: return .settle(.rejected(reason: reasonText, suspectToken: false))
        default: return .backOff(floor: retryAfter ?? Self.floor, reason: reasonText)
        }
    }

    /// Maps `INVALID_ARGUMENT`: Apple's rejection, a dead or malformed token, or an invalid payload.
    private func invalidArgument(_ error: FCMError) -> Consequence {
        let reasonText = FCMErrorCode.invalidArgument.rawValue
        if let spelled = error.apnsReason {
            guard let reason = APNsReason(rawValue: spelled) else {
                let reasonText = SanitizedReason.printable(spelled)
                return error.apnsStatus == 410
                    ? .settle(.unregistered(since: nil, reason: reasonText))
                    : .settle(.rejected(reason: reasonText, suspectToken: false))
            }
            return consequence(ofApple: reason)
        }
        if error.isAboutToken { return .settle(.unregistered(since: nil, reason: reasonText)) }
        let isUnclear = error.violations.isEmpty && error.code != nil
        return .settle(.rejected(reason: reasonText, suspectToken: isUnclear))
    }

    /// Maps Apple's response inside FCM's. It never halts the route, which also serves Android.
    private func consequence(ofApple reason: APNsReason) -> Consequence {
        let reasonText = reason.rawValue
        switch reason {
        case .unregistered, .expiredToken: return .settle(.unregistered(since: nil, reason: reasonText))
        case .badDeviceToken, .deviceTokenNotForTopic: return .settle(.rejected(reason: reasonText, suspectToken: true))
        case .badCollapseID, .badExpirationDate, .badMessageID, .badPriority, .invalidPushType, .missingDeviceToken,
            .payloadEmpty, .payloadTooLarge:
            return .settle(.rejected(reason: reasonText, suspectToken: false))
        case .badTopic, .missingTopic, .topicDisallowed, .duplicateHeaders, .badCertificate, .badCertificateEnvironment,
            .forbidden, .invalidProviderToken, .missingProviderToken, .badEnvironmentKeyIDInToken,
            .badEnvironmentKeyInToken, .badPath, .methodNotAllowed, .expiredProviderToken, .unrelatedKeyIDInToken:
            return .settle(.misconfigured(reason: reasonText))
        case .tooManyRequests: return .throttle(floor: Self.floorAfterQuota, reason: reasonText)
        case .idleTimeout, .tooManyProviderTokenUpdates, .internalServerError, .serviceUnavailable, .shutdown:
            return .backOff(floor: Self.floor, reason: reasonText)
        }
    }
}

extension Consequence {
    /// The consequence without evidence against a token, for targets that are not registrations.
    fileprivate var withoutEvidence: Consequence {
        switch self {
        case .settle(.unregistered(_, let reason)), .settle(.rejected(let reason, _)):
            .settle(.rejected(reason: reason, suspectToken: false))
        case .settle, .backOff, .throttle, .reauthenticate, .reconnect, .reconnectAndBackOff, .halt,
            .waitForThirdParty:
            self
        }
    }
}
