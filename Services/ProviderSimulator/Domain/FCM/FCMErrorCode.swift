import PushProtocol

/// The FCM error codes with their HTTP status (Firebase: FCM error codes).
enum FCMErrorCode: String, CaseIterable, Sendable {
    case unspecified = "UNSPECIFIED_ERROR"
    case invalidArgument = "INVALID_ARGUMENT"
    case unregistered = "UNREGISTERED"
    case senderIDMismatch = "SENDER_ID_MISMATCH"
    case quotaExceeded = "QUOTA_EXCEEDED"
    case unavailable = "UNAVAILABLE"
    case `internal` = "INTERNAL"
    case thirdPartyAuthError = "THIRD_PARTY_AUTH_ERROR"

    var status: Int {
        switch self {
        case .unspecified, .internal: 500
        case .invalidArgument: 400
        case .unregistered: 404
        case .senderIDMismatch: 403
        case .quotaExceeded: 429
        case .unavailable: 503
        case .thirdPartyAuthError: 401
        }
    }
}

/// The error envelope of Google APIs (ProviderFacts.md §B.6).
enum FCMErrorEnvelope {
    static func canonicalStatus(of status: Int) -> String {
        switch status {
        case 400: "INVALID_ARGUMENT"
        case 401: "UNAUTHENTICATED"
        case 403: "PERMISSION_DENIED"
        case 404: "NOT_FOUND"
        case 409: "ALREADY_EXISTS"
        case 429: "RESOURCE_EXHAUSTED"
        case 500: "INTERNAL"
        case 503: "UNAVAILABLE"
        case 504: "DEADLINE_EXCEEDED"
        default: "UNKNOWN"
        }
    }

    static func body(status: Int, message: String, details: [JSONValue]) -> [UInt8] {
        JSONWriter.object { writer in
            writer.name("error")
            writer.object { writer in
                writer.member("code", status)
                writer.member("message", message)
                writer.member("status", canonicalStatus(of: status))
                guard !details.isEmpty else { return }
                writer.name("details")
                writer.array(details) { $0.value($1) }
            }
        }
    }

    /// The `FcmError` detail.
    static func fcmError(_ code: String) -> JSONValue {
        ["@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": .string(code)]
    }

    /// The `ApnsError` detail, which carries Apple's response.
    static func apnsError(status: Int, reason: String) -> JSONValue {
        [
            "@type": "type.googleapis.com/google.firebase.fcm.v1.ApnsError", "statusCode": .int(Int64(status)),
            "reason": .string(reason),
        ]
    }

    /// The `BadRequest` detail, which names the invalid fields.
    static func badRequest(_ violations: [FCMViolation]) -> JSONValue {
        [
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": .array(
                violations.map { ["field": .string($0.field), "description": .string($0.description)] }),
        ]
    }
}

/// A rejection by FCM's own checks.
struct FCMRejection: Error, Hashable, Sendable {
    let status: Int
    let message: String
    var errorCode: FCMErrorCode?
    var violations: [FCMViolation] = []
}
