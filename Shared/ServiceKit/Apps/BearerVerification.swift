/// Keys that an app's own backend signs its users' bearer tokens with, and what a token must say.
package struct BearerVerification: Hashable, Sendable {
    package enum Algorithm: String, Hashable, Sendable, CaseIterable {
        case es256 = "ES256"
        case rs256 = "RS256"
        case hs256 = "HS256"
    }

    /// Where the keys are.
    package enum Keys: Hashable, Sendable {
        /// The path of a file: a public key (PEM) for ES256 and RS256, the shared secret in its first line for HS256, or a
        /// JWK or JWK set (RFC 7517) for any of them.
        case file(String)
        /// The URL of a JWK set of public keys.
        case url(String)
    }

    /// A claim and what it must say.
    package struct RequiredClaim: Hashable, Sendable {
        package let name: String
        package let value: String

        package init(_ name: String, is value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The one algorithm these keys are for, whatever a token says.
    package let algorithm: Algorithm
    package let keys: Keys
    /// The `iss` a token must have, if any is demanded.
    package let issuer: String?
    /// An `aud` a token must have, if any is demanded.
    package let audience: String?
    /// The claim that names the user.
    package let userClaim: String
    /// The claim that says which app a token is for, if any does.
    package let appClaim: RequiredClaim?
    /// How far clocks may differ when `exp` and `nbf` are checked.
    package let leeway: Duration

    package init(
        algorithm: Algorithm, keys: Keys, issuer: String? = nil, audience: String? = nil, userClaim: String = "sub",
        appClaim: RequiredClaim? = nil, leeway: Duration = .seconds(30)
    ) {
        self.algorithm = algorithm
        self.keys = keys
        self.issuer = issuer
        self.audience = audience
        self.userClaim = userClaim
        self.appClaim = appClaim
        self.leeway = leeway
    }

    package init(
        algorithm: Algorithm, keyFile: String, issuer: String? = nil, audience: String? = nil,
        userClaim: String = "sub", appClaim: RequiredClaim? = nil, leeway: Duration = .seconds(30)
    ) {
        self.init(
            algorithm: algorithm, keys: .file(keyFile), issuer: issuer, audience: audience, userClaim: userClaim,
            appClaim: appClaim, leeway: leeway)
    }
}
