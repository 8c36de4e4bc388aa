package import PushProtocol

/// The user or publisher of one app whom a bearer token identifies.
package struct Caller: Hashable, Sendable {
    package var app: AppID
    /// The user; for a publisher its name, the claim `sub`.
    package var user: UserID
}

/// The reason for which a bearer token was rejected, for the operator's log. Contains nothing of the token.
package struct BearerTokenError: Error, Hashable, Sendable {
    /// The reasons, in the order of the checks. Of several, the last is the most specific.
    package enum Reason: String, Hashable, Sendable, CaseIterable {
        case missing
        case malformed
        case unknownExtension = "unknown-extension"
        case untrusted
        case keysUnavailable = "keys-away"
        case expired
        case tooLongLived = "too-long-lived"
        case notYetValid = "not-yet-valid"
        case wrongIssuer = "wrong-issuer"
        case wrongAudience = "wrong-audience"
        case wrongApp = "wrong-app"
        case noUser = "no-user"
        case publisherToken = "publisher-token"
        case noScope = "no-scope"
        case ambiguousApp = "several-apps"
    }

    package let reason: Reason
    /// The app whose key signed the token; `nil` before that check.
    package var app: AppID?

    package init(_ reason: Reason, app: AppID? = nil) {
        self.reason = reason
        self.app = app
    }
}

extension BearerTokenError.Reason {
    /// The position among the checks.
    var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }

    /// The explanation for the operator.
    var explanation: String {
        switch self {
        case .missing: "there is no Authorization header with a bearer token"
        case .malformed: "it is not a signed JWT of at most \(SignedToken.maximumSize) bytes"
        case .unknownExtension: "its header requires an unsupported extension (crit)"
        case .untrusted: "its signature matches no configured key of its algorithm"
        case .keysUnavailable: "it may be signed with a key that cannot be fetched now"
        case .expired: "it has expired, or has no exp; check the clocks"
        case .tooLongLived: "it is valid for longer than HELIOGRAPH_BEARER_LIFETIME; issue tokens for a shorter time"
        case .notYetValid: "it is not valid yet (nbf); check the clocks"
        case .wrongIssuer: "its iss is not the app's issuer"
        case .wrongAudience: "its aud does not contain the app's audience"
        case .wrongApp: "its claim app-claim does not have the app's value"
        case .noUser: "its claim user-claim (of a publisher: sub) is missing, or not a user id"
        case .publisherToken: "its scope allows publishing; only publishers use it"
        case .noScope: "its scope allows no publishing, or its event_types is not a list of texts"
        case .ambiguousApp: "it is valid for several apps that trust its key: give each an audience or app-claim"
        }
    }
}
