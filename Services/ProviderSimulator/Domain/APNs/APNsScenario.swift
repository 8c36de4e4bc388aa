import PushProtocol

/// The scenario that a device token's own digits ask for: `51`, an operation, four digits of argument, then any
/// (push-protocols D.4).
///
/// One random token in 2,500 looks like that, so these are played only where the simulator is told to.
enum APNsScenario {
    static func outcome(of token: String) -> ScriptedOutcome? {
        guard token.hasPrefix("51"), token.utf8.count >= 8 else { return nil }
        let digits = token.dropFirst(2)
        guard let operation = UInt8(digits.prefix(2), radix: 16),
            let argument = Int(digits.dropFirst(2).prefix(4), radix: 16)
        else { return nil }
        return trouble(operation, argument)
            ?? refusal(operation, argument).map { ScriptedOutcome(.answer($0), count: times(operation, argument)) }
    }

    /// For the three that pass: how often they are played, 0 meaning always.
    private static func times(_ operation: UInt8, _ argument: Int) -> Int? {
        switch operation {
        case 0x06...0x08: argument == 0 ? nil : argument
        case 0x10: 1
        default: nil
        }
    }

    private static func refusal(_ operation: UInt8, _ argument: Int) -> ScriptedAnswer? {
        switch operation {
        case 0x00: ScriptedAnswer(200)
        case 0x01: ScriptedAnswer(apns: .badDeviceToken)
        case 0x02: ScriptedAnswer(apns: .deviceTokenNotForTopic)
        case 0x03: ScriptedAnswer(apns: .unregistered).with { $0.timestamp = .ago(.seconds(argument)) }
        case 0x04: ScriptedAnswer(apns: .expiredToken).with { $0.timestamp = .ago(.seconds(argument)) }
        case 0x05: ScriptedAnswer(apns: .unregistered).with { $0.timestamp = .absent }
        case 0x06: ScriptedAnswer(apns: .tooManyRequests)
        case 0x07: ScriptedAnswer(apns: .internalServerError)
        case 0x08: ScriptedAnswer(apns: .serviceUnavailable)
        case 0x10: ScriptedAnswer(apns: .expiredProviderToken)
        case 0x11: ScriptedAnswer(apns: .invalidProviderToken)
        case 0x12: ScriptedAnswer(apns: .tooManyProviderTokenUpdates)
        case 0x13: ScriptedAnswer(apns: .payloadTooLarge)
        case 0x14: ScriptedAnswer(400).with { $0.body = [] }
        case 0x15: .html502
        case 0x16: ScriptedAnswer(400, reason: "FutureReason")
        case 0x17: ScriptedAnswer(apns: .badDeviceToken).with { $0.bodyDelay = .milliseconds(argument * 10) }
        case 0x18: ScriptedAnswer(200).with { $0.omitsID = true }
        default: nil
        }
    }

    private static func trouble(_ operation: UInt8, _ argument: Int) -> ScriptedOutcome? {
        let shutdown = APNsProvider.goAwayData(.shutdown)
        return switch operation {
        case 0x09:
            ScriptedOutcome(
                .answer(ScriptedAnswer(apns: .shutdown)), goAway: GoAway(lastStream: .graceful, debugData: shutdown))
        case 0x0a: ScriptedOutcome(.answer(ScriptedAnswer(200)), delay: .milliseconds(argument * 10))
        case 0x0b: ScriptedOutcome(.silence)
        case 0x0c: ScriptedOutcome(.reset(code: UInt32(argument)))
        case 0x0d: ScriptedOutcome(.unprocessed, goAway: GoAway(lastStream: .before, debugData: shutdown), count: 1)
        case 0x0e:
            ScriptedOutcome(
                .answer(ScriptedAnswer(200)), goAway: GoAway(lastStream: .included, debugData: shutdown))
        case 0x0f: ScriptedOutcome(.drop)
        case 0x19: ScriptedOutcome(.answer(ScriptedAnswer(200)), streams: max(argument, 1))
        default: nil
        }
    }
}

extension ScriptedAnswer {
    /// A refusal in APNs' own word.
    init(apns reason: APNsReason) { self.init(reason.status, reason: reason.rawValue) }

    /// What a broken front end answers.
    static let html502 = ScriptedAnswer(502).with {
        $0.contentType = "text/html"
        $0.body = Array("<html><body><h1>502 Bad Gateway</h1></body></html>".utf8)
    }
}
