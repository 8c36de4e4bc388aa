/// The simulated push service's reasons for a rejection, with their status (RFC 8030 §5, §7; RFC 8292 §4.2).
enum WebPushReason: String, CaseIterable, Sendable {
    case unknownSubscription = "UnknownSubscription"
    case unsubscribed = "Unsubscribed"
    case methodNotAllowed = "MethodNotAllowed"
    case missingAuthorization = "MissingAuthorization"
    case badToken = "BadJwtToken"
    /// The word that Apple has for a key other than the subscription's.
    case keyMismatch = "VapidPkHashMismatch"
    case badTTL = "BadTtl"
    case badUrgency = "BadUrgency"
    case badTopic = "BadTopic"
    case badContentEncoding = "BadContentEncoding"
    case badEncryptionHeader = "BadEncryptionHeader"
    case payloadTooLarge = "PayloadTooLarge"
    case tooManyRequests = "TooManyRequests"

    var status: Int {
        switch self {
        case .badTTL, .badUrgency, .badTopic, .badContentEncoding, .badEncryptionHeader: 400
        case .missingAuthorization: 401
        case .badToken, .keyMismatch: 403
        case .unknownSubscription: 404
        case .methodNotAllowed: 405
        case .unsubscribed: 410
        case .payloadTooLarge: 413
        case .tooManyRequests: 429
        }
    }

    /// The reason of a message that only the browser can see to be wrong. The push service accepts it.
    static let undecryptable = "Undecryptable"
}

/// A rejection by the simulated push service.
struct WebPushRejection: Error, Hashable, Sendable {
    let reason: WebPushReason
    /// For the simulator's log only.
    let detail: String
    /// Until the limit allows the next message; sent as `retry-after`.
    var wait: Duration?

    init(_ reason: WebPushReason, _ detail: String, wait: Duration? = nil) {
        self.reason = reason
        self.detail = detail
        self.wait = wait
    }
}
