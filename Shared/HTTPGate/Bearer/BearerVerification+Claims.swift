import FoundationEssentials
import PushProtocol
import ServiceKit

extension BearerVerification {
    /// Whom the claims of a token that is rightly signed speak for (RFC 7519 §4.1).
    ///
    /// - Parameter longest: how long a token may be valid: from `iat`, or from now where it has none, to `exp`.
    func caller(
        of app: AppID, from claims: JSONValue, now: Date, longest: Duration
    ) throws(BearerRefusal) -> Caller {
        let leeway = Double(leeway.components.seconds)
        let seconds = now.timeIntervalSince1970
        guard let expiry = claims["exp"]?.number, seconds < expiry + leeway else {
            throw BearerRefusal(.expired, app: app)
        }
        guard expiry - (claims["iat"]?.number ?? seconds) <= Double(longest.components.seconds) + leeway else {
            throw BearerRefusal(.tooLongLived, app: app)
        }
        if let claim = claims["nbf"] {
            guard let start = claim.number, seconds >= start - leeway else {
                throw BearerRefusal(.notYetValid, app: app)
            }
        }
        if let issuer, claims["iss"]?.string != issuer { throw BearerRefusal(.wrongIssuer, app: app) }
        if let audience, claims["aud"]?.names(audience) != true { throw BearerRefusal(.wrongAudience, app: app) }
        if let appClaim, claims[appClaim.name]?.names(appClaim.value) != true {
            throw BearerRefusal(.wrongApp, app: app)
        }
        let name = claims[userClaim]
        guard let text = name?.string ?? name?.int.map(String.init), let user = UserID(rawValue: text) else {
            throw BearerRefusal(.noUser, app: app)
        }
        return Caller(app: app, user: user)
    }
}

extension JSONValue {
    /// Whether a claim that is one text or a list of them has `text`.
    fileprivate func names(_ text: String) -> Bool {
        string == text || array?.contains(.string(text)) == true
    }
}
