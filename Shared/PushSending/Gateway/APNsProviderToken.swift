import JWTKit
package import PushProtocol

/// A provider token (`push-protocols` A.8): ES256, and the claims `iss` and `iat` alone.
package enum APNsProviderToken {
    /// Signs one with the key in `pem` (PKCS#8, as downloaded from Apple).
    ///
    /// - Throws: what JWTKit throws about a text that is no such key. It may quote the text: never pass it on.
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
