import PushProtocol
import PushSending

/// Every `errorCode` of `google.firebase.fcm.v1.FcmError` (`push-protocols` B.7).
enum FCMErrorCode: String, CaseIterable, Sendable {
    case unspecifiedError = "UNSPECIFIED_ERROR"
    case invalidArgument = "INVALID_ARGUMENT"
    case thirdPartyAuthError = "THIRD_PARTY_AUTH_ERROR"
    /// The old name of the former.
    case apnsAuthError = "APNS_AUTH_ERROR"
    case senderIDMismatch = "SENDER_ID_MISMATCH"
    case unregistered = "UNREGISTERED"
    case quotaExceeded = "QUOTA_EXCEEDED"
    case `internal` = "INTERNAL"
    case unavailable = "UNAVAILABLE"
}

/// Google's error envelope, as far as it decides anything (`push-protocols` B.6). The order of `details` means nothing.
struct FCMError: Hashable, Sendable {
    var status: String?
    var message: String?
    /// As it was spelled: it may be newer than this build.
    var code: String?
    /// Apple's own answer, where FCM passes it on.
    var apnsReason: String?
    var apnsStatus: Int?
    /// The fields that `BadRequest` complains about.
    var violations: [String] = []

    /// `nil` for a body that is not Google's: HTML of a front end, nothing, or cut-off JSON.
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

    /// Whether the complaint is about the registration token itself.
    var isAboutToken: Bool {
        if !violations.isEmpty { return violations.allSatisfy { $0 == "message.token" || $0 == "message.fid" } }
        return message?.contains("not a valid FCM registration token") ?? false
    }
}
