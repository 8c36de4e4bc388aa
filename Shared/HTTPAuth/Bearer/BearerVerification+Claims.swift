import FoundationEssentials
import PushProtocol
import ServiceKit

extension BearerVerification {
    /// Checks the claims of a token with a valid signature (RFC 7519 §4.1) and returns its user.
    ///
    /// - Parameter maximumLifetime: the longest time from `iat` (or from now, without one) to `exp`.
    func caller(
        of app: AppID, from claims: JSONValue, now: Date, maximumLifetime: Duration
    ) throws(BearerTokenError) -> Caller {
        let leeway = Double(leeway.components.seconds)
        let seconds = now.timeIntervalSince1970
        guard let expiry = claims["exp"]?.number, seconds < expiry + leeway else {
            throw BearerTokenError(.expired, app: app)
        }
        guard expiry - (claims["iat"]?.number ?? seconds) <= Double(maximumLifetime.components.seconds) + leeway else {
            throw BearerTokenError(.tooLongLived, app: app)
        }
        if let claim = claims["nbf"] {
            guard let start = claim.number, seconds >= start - leeway else {
                throw BearerTokenError(.notYetValid, app: app)
            }
        }
        if let issuer, claims["iss"]?.string != issuer { throw BearerTokenError(.wrongIssuer, app: app) }
        if let audience, claims["aud"]?.names(audience) != true { throw BearerTokenError(.wrongAudience, app: app) }
        if let appClaim, claims[appClaim.name]?.names(appClaim.value) != true {
            throw BearerTokenError(.wrongApp, app: app)
        }
        let claim = claims[userClaim]
        guard let text = claim?.string ?? claim?.int.map(String.init), let user = UserID(rawValue: text) else {
            throw BearerTokenError(.noUser, app: app)
        }
        return Caller(app: app, user: user)
    }
}

extension JSONValue {
    /// Whether a claim, a string or an array of strings, contains `text`.
    fileprivate func names(_ text: String) -> Bool {
        string == text || array?.contains(.string(text)) == true
    }
}
