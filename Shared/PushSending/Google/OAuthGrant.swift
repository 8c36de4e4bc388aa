import JWTKit
package import PushProtocol

/// The OAuth2 service-account grant (`push-protocols` B.1): a signed assertion becomes an access token.
package enum OAuthGrant {
    package static let scope = "https://www.googleapis.com/auth/firebase.messaging"
    /// Google's constant, also where the account's `token_uri` points elsewhere.
    package static let audience = "https://oauth2.googleapis.com/token"
    /// How long an assertion is valid: the most that Google takes, in seconds.
    package static let assertionLifetime: Int64 = 3600
    /// How long before its end an access token is renewed.
    package static let earliness: Int64 = 300

    /// The form to `POST` to the token endpoint.
    package static func form(for account: ServiceAccount, now: Timestamp) async throws(CredentialError) -> [UInt8] {
        let assertion = try await assertion(for: account, now: now)
        // The assertion's alphabet, base64url and dots, needs no percent-encoding.
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
            // The error is not passed on: nothing that has seen the key's text may reach a log.
            throw .refused(reason: "\(account): private_key is not an RSA key (PKCS#8 PEM)")
        }
    }

    private struct Claims: JWTPayload {
        let iss, scope, aud: String
        let iat, exp: Int64

        func verify(using algorithm: some JWTAlgorithm) {}
    }

    /// Reads the token endpoint's answer.
    package static func credential(status: Int, body: [UInt8]) throws(CredentialError) -> MintedCredential {
        let answer = ProviderResponse(status: status, body: body).json
        guard status == 200 else { throw refusal(status: status, error: answer?["error"]?.string) }
        guard let token = answer?["access_token"]?.string, !token.isEmpty, token.isVisibleASCII else {
            throw .unavailable(reason: "the token endpoint's answer holds no access token")
        }
        guard let expiresIn = seconds(answer?["expires_in"]), expiresIn > 0 else {
            throw .unavailable(reason: "the token endpoint's answer has an access token without a usable expires_in")
        }
        return MintedCredential(
            authorization: "Bearer \(token)", renewAfter: .seconds(max(expiresIn - earliness, expiresIn / 2)),
            usableFor: .seconds(expiresIn))
    }

    /// `expires_in` comes as a number or as a string.
    private static func seconds(_ value: JSONValue?) -> Int64? { value?.int ?? value?.string.flatMap { Int64($0) } }

    private static func refusal(status: Int, error: String?) -> CredentialError {
        let word = error.map(ProviderWord.printable) ?? "HTTP \(status)"
        let passes =
            [408, 429, 500, 502, 503, 504].contains(status)
            || ["internal_failure", "server_error", "temporarily_unavailable"].contains(error)
        return passes
            ? .unavailable(reason: "the token endpoint answers \(word)")
            : .refused(reason: "the token endpoint refuses the service account: \(word)")
    }
}
