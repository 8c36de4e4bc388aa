import PushProtocol

/// The scenario encoded in a registration token: `sim:<NAME>[:n[:suffix]]`. `n` is the number of times it is played;
/// for `SLOW`, the delay in milliseconds. The suffix distinguishes tokens with the same scenario.
enum FCMScenario: String, CaseIterable, Sendable {
    case ok = "OK"
    case unregistered = "UNREGISTERED"
    case badToken = "BADTOKEN"
    case badPayload = "BADPAYLOAD"
    case senderID = "SENDERID"
    case quota = "QUOTA"
    case quotaRetryAfter = "QUOTA_RA"
    case deviceQuota = "DEVQUOTA"
    case unavailable = "UNAVAILABLE"
    case `internal` = "INTERNAL"
    case apnsGone = "APNS_GONE"
    case apnsAuth = "APNS_AUTH"
    case oauth401 = "OAUTH401"
    case iam403 = "IAM403"
    case bare404 = "BARE404"
    case html502 = "HTML502"
    case slow = "SLOW"
    case hang = "HANG"
    case reset = "RST"
    case goAway = "GOAWAY"
    case drop = "DROP"

    /// `nil` for a token without a scenario.
    static func outcome(of token: String) -> ScriptedOutcome? {
        guard token.hasPrefix("sim:") else { return nil }
        let words = token.dropFirst(4).split(separator: ":", omittingEmptySubsequences: false)
        guard let name = words.first, let scenario = FCMScenario(rawValue: String(name)) else { return nil }
        return scenario.outcome(argument: words.count > 1 ? Int(words[1]).map { max($0, 0) } : nil)
    }

    private func outcome(argument: Int?) -> ScriptedOutcome {
        switch self {
        case .slow: return ScriptedOutcome(.answer(ScriptedResponse(200)), delay: .milliseconds(argument ?? 1000))
        case .hang: return ScriptedOutcome(.silence, count: argument)
        case .reset: return ScriptedOutcome(.reset(code: 2), count: argument)
        case .drop: return ScriptedOutcome(.drop, count: argument)
        case .goAway:
            // Once by default: a sender retries an unprocessed request without limit.
            let goAway = GoAway(lastStream: .before, debugData: Array("session_timed_out".utf8))
            return ScriptedOutcome(.unprocessed, goAway: goAway, count: argument ?? 1)
        case .ok, .unregistered, .badToken, .badPayload, .senderID, .quota, .quotaRetryAfter, .deviceQuota,
            .unavailable, .internal, .apnsGone, .apnsAuth, .oauth401, .iam403, .bare404, .html502:
            return ScriptedOutcome(.answer(answer), count: argument)
        }
    }

    private var answer: ScriptedResponse {
        switch self {
        case .unregistered: .init(fcm: .unregistered)
        case .badToken:
            .init(fcm: .invalidArgument).with { $0.details = [Self.violation("message.token", "not a token")] }
        case .badPayload:
            .init(400).with { $0.details = [Self.violation("message.data[0].value", "not a string")] }
        case .senderID: .init(fcm: .senderIDMismatch)
        case .quota, .deviceQuota: .init(fcm: .quotaExceeded)
        case .quotaRetryAfter: .init(fcm: .quotaExceeded).with { $0.retryAfter = .text("120") }
        case .unavailable: .init(fcm: .unavailable)
        case .internal: .init(fcm: .internal)
        case .apnsGone:
            .init(fcm: .invalidArgument).with {
                $0.details = [FCMErrorEnvelope.apnsError(status: 410, reason: "Unregistered")]
            }
        case .apnsAuth:
            .init(fcm: .thirdPartyAuthError).with {
                $0.details = [FCMErrorEnvelope.apnsError(status: 403, reason: "InvalidProviderToken")]
            }
        case .oauth401: .init(401)
        case .iam403: .init(403)
        case .bare404: .init(404)
        case .html502: .html502
        case .ok, .slow, .hang, .reset, .goAway, .drop: .init(200)
        }
    }

    private static func violation(_ field: String, _ description: String) -> JSONValue {
        FCMErrorEnvelope.badRequest([FCMViolation(field: field, description: description)])
    }
}

extension ScriptedResponse {
    init(fcm code: FCMErrorCode) { self.init(code.status, errorCode: code.rawValue) }
}
