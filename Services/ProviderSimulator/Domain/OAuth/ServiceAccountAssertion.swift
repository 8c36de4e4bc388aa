import Crypto
import CryptoExtras
import PushProtocol

/// The JWT that a service account asks for an access token with (push-protocols B.1).
enum ServiceAccountAssertion {
    /// The one audience, whatever the address the endpoint is reached at.
    static let audience = "https://oauth2.googleapis.com/token"
    static let scopes: Set<String> = [
        "https://www.googleapis.com/auth/firebase.messaging", "https://www.googleapis.com/auth/cloud-platform",
    ]
    /// In seconds.
    static let maximumLifetime: Int64 = 3600
    /// How far the clocks may differ, in seconds.
    static let leeway: Int64 = 300

    /// Why an assertion is refused, in OAuth's words (RFC 6749 §5.2).
    struct Refusal: Error, Hashable, Sendable {
        let error: String
        let description: String

        init(_ description: String, error: String = "invalid_grant") {
            self.error = error
            self.description = description
        }
    }

    /// The account that signed, if everything about the assertion holds.
    static func verify(_ text: String, apps: KnownApps, at now: Timestamp) throws(Refusal) -> ServiceAccount {
        guard let jwt = CompactJWT(text) else { throw Refusal("the assertion is not a JSON Web Token") }
        guard jwt.algorithm == "RS256" else { throw Refusal("the assertion's alg is not RS256") }
        guard let issuer = jwt.claims["iss"]?.string, let account = apps.serviceAccounts[issuer] else {
            throw Refusal("the assertion's iss is no known account")
        }
        guard let publicKey = jwt.keyID.flatMap({ account.publicKeys[$0] }) else {
            throw Refusal("the assertion's kid is not a key of the account")
        }
        let signature = _RSA.Signing.RSASignature(rawRepresentation: jwt.signature)
        let digest = SHA256.hash(data: jwt.signedBytes)
        guard publicKey.isValidSignature(signature, for: digest, padding: .insecurePKCS1v1_5) else {
            throw Refusal("the assertion's signature is not by the account's key")
        }
        guard jwt.claims["aud"]?.string == audience else { throw Refusal("the assertion's aud is not \(audience)") }
        try checkLifetime(jwt.claims, at: now)
        let asked = jwt.claims["scope"]?.string?.split(separator: " ").map(String.init) ?? []
        guard !scopes.isDisjoint(with: asked) else {
            throw Refusal("the assertion asks for no scope that may send messages", error: "invalid_scope")
        }
        return account
    }

    private static func checkLifetime(_ claims: JSONValue, at now: Timestamp) throws(Refusal) {
        let plausible: ClosedRange<Int64> = 0...0xffff_ffff_ffff
        guard let issuedAt = claims["iat"]?.int, let expiresAt = claims["exp"]?.int, plausible.contains(issuedAt),
            plausible.contains(expiresAt)
        else { throw Refusal("the assertion has no iat or exp in Unix seconds") }
        guard expiresAt > issuedAt, expiresAt - issuedAt <= maximumLifetime else {
            throw Refusal("the assertion must be a short-lived token of at most 60 minutes: look at its iat and exp")
        }
        guard issuedAt <= now.seconds + leeway, expiresAt > now.seconds - leeway else {
            throw Refusal("the assertion is not good at this time: look at its iat and exp, and at the clock")
        }
    }
}
