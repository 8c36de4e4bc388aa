/// The scenario encoded in a device token: `51`, a two-digit operation, a four-digit argument, then any digits.
///
/// One random token in 2,500 has this form, so scenarios need `SIMULATOR_TOKEN_SCENARIOS`.
enum APNsScenario {
    static func outcome(of token: String) -> ScriptedOutcome? {
        guard token.hasPrefix("51"), token.utf8.count >= 8 else { return nil }
        let digits = token.dropFirst(2)
        guard let operation = UInt8(digits.prefix(2), radix: 16),
            let argument = Int(digits.dropFirst(2).prefix(4), radix: 16)
        else { return nil }
        return faults(operation, argument)
            ?? rejection(operation, argument).map { ScriptedOutcome(.answer($0), count: times(operation, argument)) }
    }

    /// How many times a temporary failure is played; an argument of 0 means always.
    private static func times(_ operation: UInt8, _ argument: Int) -> Int? {
        switch operation {
        case 0x06...0x08: argument == 0 ? nil : argument
        case 0x10: 1
        default: nil
        }
    }

    private static func rejection(_ operation: UInt8, _ argument: Int) -> ScriptedResponse? {
        switch operation {
        case 0x00: ScriptedResponse(200)
        case 0x01: ScriptedResponse(apns: .badDeviceToken)
        case 0x02: ScriptedResponse(apns: .deviceTokenNotForTopic)
        case 0x03: ScriptedResponse(apns: .unregistered).with { $0.timestamp = .ago(.seconds(argument)) }
        case 0x04: ScriptedResponse(apns: .expiredToken).with { $0.timestamp = .ago(.seconds(argument)) }
        case 0x05: ScriptedResponse(apns: .unregistered).with { $0.timestamp = .absent }
        case 0x06: ScriptedResponse(apns: .tooManyRequests)
        case 0x07: ScriptedResponse(apns: .internalServerError)
        case 0x08: ScriptedResponse(apns: .serviceUnavailable)
        case 0x10: ScriptedResponse(apns: .expiredProviderToken)
        case 0x11: ScriptedResponse(apns: .invalidProviderToken)
        case 0x12: ScriptedResponse(apns: .tooManyProviderTokenUpdates)
        case 0x13: ScriptedResponse(apns: .payloadTooLarge)
        case 0x14: ScriptedResponse(400).with { $0.body = [] }
        case 0x15: .html502
        case 0x16: ScriptedResponse(400, reason: "FutureReason")
        case 0x17: ScriptedResponse(apns: .badDeviceToken).with { $0.bodyDelay = .milliseconds(argument * 10) }
        case 0x18: ScriptedResponse(200).with { $0.omitsID = true }
        default: nil
        }
    }

    private static func faults(_ operation: UInt8, _ argument: Int) -> ScriptedOutcome? {
        let shutdown = APNsProvider.goAwayData(.shutdown)
        return switch operation {
        case 0x09:
            ScriptedOutcome(
                .answer(ScriptedResponse(apns: .shutdown)), goAway: GoAway(lastStream: .graceful, debugData: shutdown))
        case 0x0a: ScriptedOutcome(.answer(ScriptedResponse(200)), delay: .milliseconds(argument * 10))
        case 0x0b: ScriptedOutcome(.silence)
        case 0x0c: ScriptedOutcome(.reset(code: UInt32(argument)))
        case 0x0d: ScriptedOutcome(.unprocessed, goAway: GoAway(lastStream: .before, debugData: shutdown), count: 1)
        case 0x0e:
            ScriptedOutcome(
                .answer(ScriptedResponse(200)), goAway: GoAway(lastStream: .included, debugData: shutdown))
        case 0x0f: ScriptedOutcome(.drop)
        case 0x19: ScriptedOutcome(.answer(ScriptedResponse(200)), streams: max(argument, 1))
        default: nil
        }
    }
}

extension ScriptedResponse {
    init(apns reason: APNsReason) { self.init(reason.status, reason: reason.rawValue) }

    /// The response of a failing load balancer.
    static let html502 = ScriptedResponse(502).with {
        $0.contentType = "text/html"
        $0.body = Array("<html><body><h1>502 Bad Gateway</h1></body></html>".utf8)
    }
}
