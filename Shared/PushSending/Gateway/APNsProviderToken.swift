package import PushProtocol
import JWTKit

/// Signs APNs provider tokens: JWTs with ES256 and the claims `iss` and `iat`.
///
/// Source: Apple, "Establishing a token-based connection to APNs".
package enum APNsProviderToken {
    /// Signs a token with the key in `pem` (PKCS#8, as downloaded from Apple).
    ///
    /// - Throws: JWTKit's error if `pem` is no such key. It may quote the text: never log it.
    package static func sign(
        pem: String, keyID: String, teamID: String, issuedAt: Timestamp
    ) async throws -> String {
        let keys = JWTKeyCollection()
        await keys.add(ecdsa: try ES256PrivateKey(pem: pem), kid: JWKIdentifier(string: keyID))
        return try await keys.sign(
            Claims(iss: teamID, iat: issuedAt.seconds), kid: JWKIdentifier(string: keyID))
    }

    private struct Claims: JWTPayload {
        let iss: String
        let iat: Int64

        func verify(using algorithm: some JWTAlgorithm) {}
    }
}
