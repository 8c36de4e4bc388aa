/// The trusted keys of an app's bearer tokens, and the required claims.
package struct BearerVerification: Hashable, Sendable {
    package enum Algorithm: String, Hashable, Sendable, CaseIterable {
        case es256 = "ES256"
        case rs256 = "RS256"
        case hs256 = "HS256"
    }

    package enum KeySource: Hashable, Sendable {
        /// A file's path: a public key (PEM) for ES256 and RS256, the shared secret in the first line for HS256, or a
        /// JWK or JWK set (RFC 7517) for any algorithm.
        case file(String)
        /// The URL of a JWK set of public keys.
        case url(String)
    }

    package struct RequiredClaim: Hashable, Sendable {
        package let name: String
        package let value: String

        package init(_ name: String, is value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The only algorithm of these keys; a token's `alg` must match it.
    package let algorithm: Algorithm
    package let keys: KeySource
    /// The required `iss`, if any.
    package let issuer: String?
    /// The required `aud`, if any.
    package let audience: String?
    /// The claim with the user's id.
    package let userClaim: String
    package let appClaim: RequiredClaim?
    /// The tolerated clock difference for `exp` and `nbf`.
    package let leeway: Duration

    package init(
        algorithm: Algorithm, keys: KeySource, issuer: String? = nil, audience: String? = nil,
        userClaim: String = "sub", appClaim: RequiredClaim? = nil, leeway: Duration = .seconds(30)
    ) {
        self.algorithm = algorithm
        self.keys = keys
        self.issuer = issuer
        self.audience = audience
        self.userClaim = userClaim
        self.appClaim = appClaim
        self.leeway = leeway
    }
}
