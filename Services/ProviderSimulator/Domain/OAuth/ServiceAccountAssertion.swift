import Crypto
import CryptoExtras
import PushProtocol

/// The signed JWT in an OAuth 2.0 service account grant (Google: Using OAuth 2.0 for server to server applications).
enum ServiceAccountAssertion {
    /// The required audience, whatever the endpoint's address.
    static let audience = "https://oauth2.googleapis.com/token"
    static let scopes: Set<String> = [
        "https://www.googleapis.com/auth/firebase.messaging", "https://www.googleapis.com/auth/cloud-platform",
    ]
    /// In seconds.
    static let maximumLifetime: Int64 = 3600
    /// The allowed clock difference, in seconds.
    static let leeway: Int64 = 300

    /// An OAuth error response (RFC 6749 §5.2).
    struct OAuthError: Error, Hashable, Sendable {
        let error: String
        let description: String

        init(_ description: String, error: String = "invalid_grant") {
            self.error = error
            self.description = description
        }
    }

    static func verify(_ text: String, apps: KnownApps, at now: Timestamp) throws(OAuthError) -> ServiceAccount {
        guard let jwt = CompactJWT(text) else { throw OAuthError("the assertion is not a JSON Web Token") }
        guard jwt.algorithm == "RS256" else { throw OAuthError("the assertion's alg is not RS256") }
        guard let issuer = jwt.claims["iss"]?.string, let account = apps.serviceAccounts[issuer] else {
            throw OAuthError("the assertion's iss is not a known account")
        }
        guard let publicKey = jwt.keyID.flatMap({ account.publicKeys[$0] }) else {
            throw OAuthError("the assertion's kid is not a key of the account")
        }
        let signature = _RSA.Signing.RSASignature(rawRepresentation: jwt.signature)
        let digest = SHA256.hash(data: jwt.signedBytes)
        guard publicKey.isValidSignature(signature, for: digest, padding: .insecurePKCS1v1_5) else {
            throw OAuthError("the assertion was not signed by the account's key")
        }
        guard jwt.claims["aud"]?.string == audience else { throw OAuthError("the assertion's aud is not \(audience)") }
        try checkLifetime(jwt.claims, at: now)
        let asked = jwt.claims["scope"]?.string?.split(separator: " ").map(String.init) ?? []
        guard !scopes.isDisjoint(with: asked) else {
            throw OAuthError("the assertion's scope does not allow sending messages", error: "invalid_scope")
        }
        return account
    }

    private static func checkLifetime(_ claims: JSONValue, at now: Timestamp) throws(OAuthError) {
        let plausible: ClosedRange<Int64> = 0...0xffff_ffff_ffff
        guard let issuedAt = claims["iat"]?.int, let expiresAt = claims["exp"]?.int, plausible.contains(issuedAt),
            plausible.contains(expiresAt)
        else { throw OAuthError("the assertion has no iat or exp in Unix seconds") }
        guard expiresAt > issuedAt, expiresAt - issuedAt <= maximumLifetime else {
            throw OAuthError("the assertion must be a short-lived token of at most 60 minutes: check its iat and exp")
        }
        guard issuedAt <= now.seconds + leeway, expiresAt > now.seconds - leeway else {
            throw OAuthError("the assertion is not valid at this time: check its iat and exp, and the clock")
        }
    }
}
