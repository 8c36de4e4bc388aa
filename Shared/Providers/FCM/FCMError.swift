import PushProtocol

/// The `errorCode` values of `google.firebase.fcm.v1.FcmError` (Firebase: FCM error codes).
enum FCMErrorCode: String, CaseIterable, Sendable {
    case unspecifiedError = "UNSPECIFIED_ERROR"
    case invalidArgument = "INVALID_ARGUMENT"
    case thirdPartyAuthError = "THIRD_PARTY_AUTH_ERROR"
    /// The former name of `THIRD_PARTY_AUTH_ERROR`.
    case apnsAuthError = "APNS_AUTH_ERROR"
    case senderIDMismatch = "SENDER_ID_MISMATCH"
    case unregistered = "UNREGISTERED"
    case quotaExceeded = "QUOTA_EXCEEDED"
    case `internal` = "INTERNAL"
    case unavailable = "UNAVAILABLE"
}

/// The relevant members of Google's error response (ProviderFacts.md §B.6). `details` has no defined order.
struct FCMError: Hashable, Sendable {
    var status: String?
    var message: String?
    /// The unparsed code, which may be newer than this build.
    var code: String?
    /// Apple's response, where FCM includes it.
    var apnsReason: String?
    var apnsStatus: Int?
    /// The invalid fields in `BadRequest`.
    var violations: [String] = []

    /// Returns `nil` for a body that is not a Google error: HTML, empty or truncated.
    init?(_ body: JSONValue?) {
        guard let error = body?["error"], error.object != nil else { return nil }
        status = error["status"]?.string
        message = error["message"]?.string
        for detail in error["details"]?.array ?? [] {
            switch detail["@type"]?.string?.split(separator: "/").last {
            case "google.firebase.fcm.v1.FcmError": code = detail["errorCode"]?.string
            case "google.firebase.fcm.v1.ApnsError":
                apnsReason = detail["reason"]?.string
                apnsStatus = detail["statusCode"]?.int.map { Int($0) }
            case "google.rpc.BadRequest":
                violations += (detail["fieldViolations"]?.array ?? []).compactMap { $0["field"]?.string }
            default: break
            }
        }
    }

    /// Whether the error concerns the registration token.
    var isAboutToken: Bool {
        if !violations.isEmpty { return violations.allSatisfy { $0 == "message.token" || $0 == "message.fid" } }
        return message?.contains("not a valid FCM registration token") ?? false
    }
}
