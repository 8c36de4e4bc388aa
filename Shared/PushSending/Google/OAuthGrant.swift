package import PushProtocol
import JWTKit
import Providers

/// The OAuth 2.0 service-account grant: exchanges a signed assertion for an access token (RFC 7523).
///
/// Source: Google Identity, "Using OAuth 2.0 for server to server applications".
package enum OAuthGrant {
    package static let scope = "https://www.googleapis.com/auth/firebase.messaging"
    /// Google's fixed audience, also for accounts with another `token_uri`.
    package static let audience = "https://oauth2.googleapis.com/token"
    /// The lifetime of an assertion, in seconds: Google's maximum.
    package static let assertionLifetime: Int64 = 3600
    /// The time before its expiry at which to renew an access token, in seconds.
    package static let renewalMargin: Int64 = 300

    /// The form to `POST` to the token endpoint.
    package static func form(for account: ServiceAccount, now: Timestamp) async throws(CredentialError) -> [UInt8] {
        let assertion = try await assertion(for: account, now: now)
        // Base64url and dots need no percent-encoding.
        return Array("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=\(assertion)".utf8)
    }

    package static func assertion(for account: ServiceAccount, now: Timestamp) async throws(CredentialError) -> String {
        let claims = Claims(
            iss: account.clientEmail, scope: scope, aud: audience, iat: now.seconds,
            exp: now.seconds + assertionLifetime)
        do {
            let keys = JWTKeyCollection()
            let kid = JWKIdentifier(string: account.privateKeyID)
            await keys.add(
                rsa: try Insecure.RSA.PrivateKey(pem: account.privateKey), digestAlgorithm: .sha256, kid: kid)
            return try await keys.sign(claims, kid: kid)
        } catch {
            // Drops the error, which may quote the key.
            throw .refused(reason: "\(account): private_key is not an RSA key (PKCS#8 PEM)")
        }
    }

    private struct Claims: JWTPayload {
        let iss, scope, aud: String
        let iat, exp: Int64

        func verify(using algorithm: some JWTAlgorithm) {}
    }

    /// Parses the token endpoint's response.
    package static func credential(status: Int, body: [UInt8]) throws(CredentialError) -> MintedCredential {
        let answer = ProviderResponse(status: status, body: body).json
        guard status == 200 else { throw refusal(status: status, error: answer?["error"]?.string) }
        guard let token = answer?["access_token"]?.string, !token.isEmpty, token.isVisibleASCII else {
            throw .unavailable(reason: "the token endpoint's response has no access token")
        }
        guard let expiresIn = seconds(answer?["expires_in"]), expiresIn > 0 else {
            throw .unavailable(reason: "the token endpoint's response has no valid expires_in")
        }
        return MintedCredential(
            authorization: "Bearer \(token)", renewAfter: .seconds(max(expiresIn - renewalMargin, expiresIn / 2)),
            usableFor: .seconds(expiresIn))
    }

    /// `expires_in` may be a number or a string.
    private static func seconds(_ value: JSONValue?) -> Int64? { value?.int ?? value?.string.flatMap { Int64($0) } }

    private static func refusal(status: Int, error: String?) -> CredentialError {
        let word = error.map(SanitizedReason.printable) ?? "HTTP \(status)"
        let passes =
            [408, 429, 500, 502, 503, 504].contains(status)
            || ["internal_failure", "server_error", "temporarily_unavailable"].contains(error)
        return passes
            ? .unavailable(reason: "the token endpoint answers \(word)")
            : .refused(reason: "the token endpoint refuses the service account: \(word)")
    }
}
