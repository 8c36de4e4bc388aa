package import PushProtocol

/// Who a bearer token says is calling: a user of one app.
package struct Caller: Hashable, Sendable {
    package var app: AppID
    package var user: UserID

    package init(app: AppID, user: UserID) {
        self.app = app
        self.user = user
    }
}

/// Why a bearer token is not accepted: for the operator's log. It holds nothing of the token.
package struct BearerRefusal: Error, Hashable, Sendable {
    /// In the order in which things are looked at: of several refusals, the last is the most telling.
    package enum Reason: String, Hashable, Sendable, CaseIterable {
        case missing
        case malformed
        case unknownExtension = "unknown-extension"
        case untrusted
        case keysAway = "keys-away"
        case expired
        case tooLongLived = "too-long-lived"
        case notYetValid = "not-yet-valid"
        case wrongIssuer = "wrong-issuer"
        case wrongAudience = "wrong-audience"
        case wrongApp = "wrong-app"
        case noUser = "no-user"
        case severalApps = "several-apps"
    }

    package let reason: Reason
    /// The app whose key signed the token; `nil` as long as that is not known.
    package var app: AppID?

    package init(_ reason: Reason, app: AppID? = nil) {
        self.reason = reason
        self.app = app
    }
}

extension BearerRefusal.Reason {
    /// How far the token came.
    var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }

    /// What an operator should know, and look at.
    var explanation: String {
        switch self {
        case .missing: "there is no Authorization header with a bearer token"
        case .malformed: "it is not a signed JWT of at most \(SignedToken.maximumSize) bytes"
        case .unknownExtension: "its header demands an extension (crit) that is not known here"
        case .untrusted: "no configured key of the algorithm that it names has signed it"
        case .keysAway: "it may be signed with a key that cannot be fetched now"
        case .expired: "it has expired, or has no exp; are the clocks right?"
        case .tooLongLived: "it is valid for longer than HELIOGRAPH_BEARER_LIFETIME; issue tokens for a shorter time"
        case .notYetValid: "it is not valid yet (nbf); are the clocks right?"
        case .wrongIssuer: "its iss is not the app's issuer"
        case .wrongAudience: "its aud does not name the app's audience"
        case .wrongApp: "its claim app-claim does not say what is expected of this app's tokens"
        case .noUser: "its claim user-claim is missing, or not a user id"
        case .severalApps: "several apps trust its key and it fits them all: give them an audience or app-claim each"
        }
    }
}
